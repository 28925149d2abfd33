//! `check`: what it prints about servers, and how it ends.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::http::{self, Answer};
use crate::{User, scripted};

#[test]
fn our_own_server_is_clean() {
    let begun = Instant::now();
    let ended = User::new().with_stdio(&["check", "--all", "--skip", "TOOL-07"]);
    assert_eq!(ended.code, 0, "{}{}", ended.out, ended.err);
    // A whole run against a local server.
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    assert!(ended.out.contains(" 0 broken ") && ended.out.contains(" 0 not verified"), "{}", ended.out);
    assert!(ended.out.contains("RPC-05 ids 2025-11-25 kept"), "{}", ended.out);
}

#[test]
fn a_finding_has_what_to_change_and_how_to_repeat_it() {
    let user = User::new();
    let server = scripted("{}", &[]);
    let ended = user.with_script(&["check", "--only", "PING-01"], &server);
    assert_eq!(ended.code, 6, "{}{}", ended.out, ended.err);
    for part in ["PING-01", "2025-06-18", "answer ping at once", "\"method\":\"ping\"", "-32601", "printf"] {
        assert!(ended.out.contains(part), "{part}: {}", ended.out);
    }
    let ended = user.with_script(&["check", "--only", "PING-01", "-o", "json"], &server);
    let report: Value = serde_json::from_str(&ended.out).unwrap();
    let rule = &report["judgements"][0]["rules"][0];
    assert_eq!((ended.code, &rule["outcome"], &rule["level"]), (6, &"broken".into(), &"must".into()));
    let exchange = &rule["violations"][0]["exchange"];
    assert!(exchange["repeat"].as_str().unwrap().starts_with("(printf"), "{rule}");
}

#[test]
fn a_report_is_written_in_every_format_and_compared_with_the_next() {
    let user = User::new();
    let server = scripted("{}", &[]);
    let files = ["c.txt", "c.json", "c.xml", "c.sarif", "c.html", "c.md"].map(|name| user.word(name));
    let mut words = vec!["check", "--only", "PING-01", "-o", "junit"];
    files.iter().for_each(|file| words.extend(["--save", file]));
    let ended = user.with_script(&words, &server);
    assert_eq!((ended.code, ended.out), (6, user.read("c.xml")), "{}", ended.err);
    for name in ["c.txt", "c.json", "c.xml", "c.sarif", "c.html", "c.md"] {
        assert!(user.read(name).contains("answer ping at once with an empty result"), "{name}");
    }
    assert!(user.read("c.html").contains("id=\"conversation\""), "what passed is beside the rules");
    let rendered = user.run(&["report", &files[1], "-o", "html"]);
    assert!(rendered.code == 6 && !rendered.out.contains("id=\"conversation\""), "{}", rendered.out);
    let same = user.with_script(&["check", "--only", "PING-01", "--diff", &files[1]], &server);
    assert!(same.code == 0 && same.out.contains("Still broken: 1 rule"), "{}{}", same.out, same.err);
    let more = user.with_script(&["check", "--only", "PING-01,RES-06", "--diff", &files[1]], &server);
    assert!(more.out.contains("still broken"), "{}{}", more.out, more.err);
    let no_page = user.with_script(&["check", "--diff", &files[1], "-o", "html"], &server);
    assert!(no_page.code == 1 && no_page.err.contains("not as html"), "{}", no_page.err);
    user.write("none.json", "{}");
    let none = user.with_script(&["check", "--diff", &user.word("none.json")], &server);
    assert!(none.code != 0 && none.err.contains("it is no report"), "{}", none.err);
}

#[test]
fn a_baseline_has_what_is_known_and_nothing_stale() {
    let user = User::new();
    let server = scripted("{}", &[]);
    let baseline = user.word("known.txt");
    let words = ["check", "--only", "PING-01,RPC-06", "--baseline", &baseline];
    let updated = user.with_script(&[&words[..], &["--update-baseline"]].concat(), &server);
    assert_eq!((updated.code, user.read("known.txt")), (0, "PING-01 2025-06-18\n".to_owned()));
    assert_eq!(user.with_script(&words, &server).code, 0);
    user.write("known.txt", "PING-01\nRPC-06 # was broken once\n");
    let stale = user.with_script(&words, &server);
    assert!(stale.code == 6 && stale.out.contains("stale the server keeps RPC-06"), "{}", stale.out);
    user.write("known.txt", "PING-1\n");
    let wrong = user.with_script(&words, &server);
    assert!(wrong.code == 1 && wrong.err.contains("line 1"), "{}", wrong.err);
}

#[test]
fn a_server_that_cannot_be_reached_leaves_the_baseline_as_it_is() {
    let user = User::new();
    user.write("known.txt", "PING-01\nRPC-06\n");
    let words = ["check", "--baseline", &user.word("known.txt"), "--update-baseline"];
    let ended = user.with(&words, &["no-such-program"]);
    assert_eq!((ended.code, user.read("known.txt").as_str()), (7, "PING-01\nRPC-06\n"), "{}", ended.out);
    let words = [&words[..], &["--only", "PING-01"]].concat();
    assert_eq!(user.with_script(&words, &scripted("{}", &[])).code, 0);
    assert_eq!(user.read("known.txt"), "RPC-06\nPING-01 2025-06-18\n", "what was not judged stays");
}

#[test]
fn each_revision_that_is_asked_for_has_to_be_checked() {
    let words = ["check", "--only", "RPC-06", "--revision", "2025-06-18"];
    let server = scripted("{}", &[]);
    assert_eq!(User::new().with_script(&words, &server).code, 0);
    let ended = User::new().with_script(&[&words[..], &["--revision", "2024-11-05"]].concat(), &server);
    assert_eq!(ended.code, 7, "{}", ended.out);
    assert!(ended.out.contains("2024-11-05 is not checked"), "{}", ended.out);
}

#[test]
fn a_server_that_wants_a_token_is_no_success_and_the_option_is_named() {
    let origin =
        http::answering(|_, _| Answer("401 Unauthorized", "WWW-Authenticate: Bearer\r\n", String::new()));
    let ended = User::new().run(&["check", "--revision", "2025-11-25", &format!("{origin}/mcp")]);
    assert_eq!(ended.code, 7, "{}{}", ended.out, ended.err);
    let hint = "a token is sent with --header \"Authorization: Bearer TOKEN\"";
    assert!(ended.out.contains(hint), "{}", ended.out);
}

#[test]
fn a_page_has_no_secrets() {
    let origin = http::answering(|request, _| {
        // It repeats what it was given.
        let told = request.head.lines().find(|line| line.starts_with("authorization")).unwrap_or_default();
        Answer("401 Unauthorized", "Content-Type: application/json\r\n", format!("{{\"error\":\"{told}\"}}"))
    });
    let user = User::new();
    let words = ["check", "--revision", "2025-11-25", "--header", "Authorization: Bearer s3cr3t-t0k3n"];
    let url = format!("{origin}/mcp");
    let words = [&words[..], &["-o", "html", &url]].concat();
    let ended = user.run(&words);
    assert!(ended.out.contains("id=\"conversation\"") && ended.out.contains("initialize"), "{}", ended.err);
    assert!(!ended.out.contains("s3cr3t-t0k3n"), "{}", ended.out);
}

#[test]
fn a_check_that_finds_nothing_out_is_no_success() {
    let user = User::new();
    for (words, server) in
        [(&["check"][..], "no-such-program"), (&["check", "--response-timeout", "1"], "true")]
    {
        let ended = user.with(words, &[server]);
        assert_eq!(ended.code, 7, "{}{}", ended.out, ended.err);
        assert!(ended.out.contains("nothing could be verified"), "{}", ended.out);
    }
    let unsupported = user.with_script(&["check", "--revision", "2024-11-05"], &scripted("{}", &[]));
    assert_eq!(unsupported.code, 7, "{}", unsupported.out);
    assert!(unsupported.out.contains("2024-11-05 is not checked"), "{}", unsupported.out);
}

#[test]
fn unknown_rules_and_probes_are_refused() {
    for words in
        [["check", "--only", "PING-1"], ["check", "--probe", "nothing"], ["check", "--revision", "1"]]
    {
        let ended = User::new().with_stdio(&words);
        assert_eq!(ended.code, 1, "{words:?} {}", ended.err);
    }
}
