//! The page.

use std::collections::HashSet;

use refmcp_audit::report::html;

use crate::support::{BROKEN, GOOD, assert_balanced, client, opened, report_and_excerpt};

fn page(recording: &str) -> String {
    let (report, excerpt) = report_and_excerpt(recording);
    html(&report, &excerpt)
}

/// The values of an attribute.
fn values<'a>(page: &'a str, attribute: &str) -> Vec<&'a str> {
    let start = format!(" {attribute}=\"");
    page.split(&*start).skip(1).map(|rest| rest.split('"').next().unwrap()).collect()
}

#[test]
fn nothing_of_a_message_is_markup() {
    let page = page(BROKEN);
    assert_balanced(&page);
    assert!(page.contains("&lt;/pre&gt;&lt;script&gt;alert(1)&lt;/script&gt;"), "{page}");
    for forbidden in
        ["<script", "<iframe", "<img", "<link", "<object", "javascript:", "\u{202e}", "url(", "@import"]
    {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    let tags = page.split('<').skip(1).map(|part| part.split('>').next().unwrap());
    let handlers: Vec<&str> = tags.filter(|tag| tag.contains(" on")).collect();
    assert_eq!(handlers, [""; 0]);
    assert!(page.contains(
        "Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'"
    ));
}

#[test]
fn a_violation_leads_to_its_message_and_back() {
    let page = page(BROKEN);
    let ids = values(&page, "id");
    let unique: HashSet<&str> = ids.iter().copied().collect();
    assert_eq!(unique.len(), ids.len(), "{ids:?}");
    let inner: Vec<&str> = values(&page, "href").into_iter().filter_map(|it| it.strip_prefix('#')).collect();
    assert_eq!(inner, ["event-7", "violation-0-RPC-05-client-0"]);
    assert!(inner.iter().all(|target| unique.contains(target)));
    let outer = values(&page, "href").into_iter().filter(|it| !it.starts_with('#'));
    // Rules of extensions are in their repositories.
    let known = ["https://modelcontextprotocol.io/", "https://github.com/modelcontextprotocol/"];
    let other: Vec<&str> = outer.filter(|it| !known.iter().any(|site| it.starts_with(site))).collect();
    assert_eq!(other, [""; 0]);
}

#[test]
fn the_page_can_be_read_by_landmarks_and_headers() {
    let page = page(GOOD);
    assert_balanced(&page);
    for part in
        ["<html lang=\"en\">", "<header>", "<main>", "<footer>", "<h1>", "<caption>", "<th scope=\"row\">"]
    {
        assert!(page.contains(part), "{part}");
    }
    let ids: HashSet<&str> = values(&page, "id").into_iter().collect();
    assert!(values(&page, "aria-labelledby").into_iter().all(|id| ids.contains(id)));
    let tables = page.matches("<table").count();
    assert_eq!(page.matches("<thead>").count(), tables);
    // The style sheet filters by the boxes that are there.
    let boxes: Vec<&str> = values(&page, "id").into_iter().filter(|id| id.starts_with("show-")).collect();
    assert_eq!(boxes.len(), 10);
    assert!(boxes.iter().all(|id| page.contains(&format!("#{id}:not(:checked)"))));
}

#[test]
fn a_page_on_nothing_says_so() {
    let page = page("");
    assert_balanced(&page);
    assert!(page.contains("<p class=\"conclusion unjudged\">Nothing was judged"), "{page}");
}

#[test]
fn a_long_recording_makes_a_page_of_limited_size() {
    let mut recording = opened("stdio");
    let long = format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/x","params":{{"text":"{}"}}}}"#,
        "<".repeat(5000)
    );
    for _ in 0..3000 {
        recording += &client(&long);
    }
    recording += &client(r#"{"jsonrpc":"2.0","id":7,"result":{}}"#);
    let page = page(&recording);
    assert!(page.len() < 50 << 20, "{}", page.len());
    // The evidence is there, whatever was left out before it.
    assert!(page.contains("<li id=\"event-3002\""), "the evidence is missing");
    assert!(page.contains(" events left out; the recording has them."));
    assert!(page.contains("bytes in all)"));
}
