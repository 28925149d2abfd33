//! The text format of the metrics, read by a strict parser.

use std::collections::{BTreeMap, HashMap, HashSet};

use refmcp_http::Endpoint;
use refmcp_server::{Call, NoArguments, Server, Tool};
use serde_json::json;
use tokio::net::TcpListener;

use crate::support::http1::send;
use crate::support::{Client, LATEST_SESSION, Site};

type Labels = BTreeMap<String, String>;

/// One family, from its help to its last sample.
#[derive(Debug, Default)]
struct Family {
    kind: String,
    samples: Vec<(String, Labels, f64)>,
}

fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// A sample's name, labels and value.
fn sample(line: &str) -> (String, Labels, f64) {
    let end = line.find(['{', ' ']).unwrap_or_else(|| panic!("no value: {line}"));
    let (name, mut rest) = line.split_at(end);
    let mut labels = Labels::new();
    if let Some(mut inside) = rest.strip_prefix('{') {
        loop {
            let (label, after) = inside.split_once("=\"").unwrap_or_else(|| panic!("no label: {line}"));
            let mut text = String::new();
            let mut characters = after.char_indices();
            let close = loop {
                match characters.next().unwrap_or_else(|| panic!("no end of a label: {line}")) {
                    (place, '"') => break place,
                    (_, '\\') => text.push(match characters.next() {
                        Some((_, 'n')) => '\n',
                        Some((_, escaped @ ('\\' | '"'))) => escaped,
                        other => panic!("{other:?} is escaped: {line}"),
                    }),
                    (_, character) => text.push(character),
                }
            };
            assert!(is_name(label) && !label.starts_with("__"), "{line}");
            assert!(labels.insert(label.to_owned(), text).is_none(), "a label twice: {line}");
            inside = &after[close + 1..];
            match inside.strip_prefix(',') {
                Some(more) => inside = more,
                None => break,
            }
        }
        rest = inside.strip_prefix('}').unwrap_or_else(|| panic!("{line}"));
    }
    let value = rest.strip_prefix(' ').unwrap_or_else(|| panic!("{line}"));
    let value: f64 = value.parse().unwrap_or_else(|error| panic!("{error}: {line}"));
    (name.to_owned(), labels, value)
}

fn parse(page: &str) -> BTreeMap<String, Family> {
    assert!(page.ends_with('\n') && !page.contains("\n\n") && !page.contains('\r'));
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let (mut helped, mut seen) = (HashSet::new(), HashSet::new());
    let mut current = String::new();
    for line in page.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, text) = help.split_once(' ').unwrap();
            assert!(is_name(name) && !text.is_empty() && !text.contains('\\'), "{line}");
            assert!(helped.insert(name), "help twice: {line}");
        } else if let Some(of) = line.strip_prefix("# TYPE ") {
            let (name, kind) = of.split_once(' ').unwrap();
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert!(helped.contains(name), "no help before {line}");
            assert_eq!(name.ends_with("_total"), kind == "counter", "{line}");
            let family = Family { kind: kind.to_owned(), ..Family::default() };
            assert!(families.insert(name.to_owned(), family).is_none(), "a family twice: {line}");
            name.clone_into(&mut current);
        } else {
            let (name, labels, value) = sample(line);
            let family = families.get_mut(&current).unwrap_or_else(|| panic!("no type before {line}"));
            let suffix = name.strip_prefix(&current).unwrap_or_else(|| panic!("{line} is of {current}"));
            let fits = if family.kind == "histogram" {
                ["_bucket", "_sum", "_count"].contains(&suffix)
            } else {
                suffix.is_empty()
            };
            assert!(fits && labels.contains_key("le") == (suffix == "_bucket"), "{line}");
            assert!(value.is_finite() && value >= 0.0, "{line}");
            assert!(seen.insert((name.clone(), labels.clone())), "a series twice: {line}");
            family.samples.push((name, labels, value));
        }
    }
    families.values().filter(|family| family.kind == "histogram").for_each(check_histogram);
    families
}

/// The lines of a histogram that have the same labels.
#[derive(Default)]
struct Series {
    columns: Vec<(f64, f64)>,
    sums: Vec<f64>,
    counts: Vec<f64>,
}

/// Columns rise, the last is infinite and is the count, and there is a sum.
fn check_histogram(family: &Family) {
    let mut series: HashMap<Labels, Series> = HashMap::new();
    for (name, labels, value) in &family.samples {
        let mut labels = labels.clone();
        let bound = labels.remove("le");
        let Series { columns, sums, counts } = series.entry(labels).or_default();
        match bound {
            Some(bound) => columns.push((bound.parse().unwrap(), *value)),
            None if name.ends_with("_sum") => sums.push(*value),
            None => counts.push(*value),
        }
    }
    for (labels, Series { columns, sums, counts }) in series {
        assert!(columns.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 <= two[1].1), "{labels:?}");
        let (bound, all) = *columns.last().unwrap();
        assert!(bound.is_infinite() && sums.len() == 1 && counts == [all], "{labels:?}");
    }
}

#[tokio::test]
async fn the_text_format_is_valid() {
    let site = Site::usual().await;
    let client = Client::open(&site, LATEST_SESSION).await;
    for _ in 0..3 {
        client.is_served().await;
    }
    client.call(2, "no such tool", json!({})).await;
    client.call(3, "another", json!({})).await;
    let reply = site.send("GET", "/metrics", &[], b"").await;
    assert_eq!(reply.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    let families = parse(&reply.text().await);
    for name in [
        "refmcp_build_info",
        "refmcp_sessions",
        "refmcp_streams",
        "refmcp_rejections_total",
        "refmcp_response_seconds",
        "refmcp_calls_total",
        "refmcp_call_seconds",
        "refmcp_tool_calls_total",
        "refmcp_tool_call_seconds",
        "refmcp_findings_total",
    ] {
        assert!(families.contains_key(name), "no {name}");
    }
    if cfg!(target_os = "linux") {
        for name in [
            "process_cpu_seconds_total",
            "process_resident_memory_bytes",
            "process_virtual_memory_bytes",
            "process_open_fds",
            "process_max_fds",
            "process_start_time_seconds",
            "process_threads",
        ] {
            assert_eq!(families[name].samples.len(), 1, "{name}");
        }
    }
    let build = &families["refmcp_build_info"].samples;
    assert_eq!((build.len(), build[0].2), (1, 1.0));
    assert_eq!(build[0].1["version"], env!("CARGO_PKG_VERSION"));

    let tool = |name: &str| -> f64 {
        let own = |labels: &Labels| labels.get("tool").is_some_and(|tool| tool == name);
        let samples = &families["refmcp_tool_calls_total"].samples;
        samples.iter().filter(|(_, labels, _)| own(labels)).map(|(_, _, value)| value).sum()
    };
    assert_eq!((tool("echo"), tool("slow"), tool("(other)")), (3.0, 0.0, 2.0));
    assert_eq!(tool("no such tool"), 0.0, "what clients call it is no label");
    let count = families["refmcp_tool_call_seconds"].samples.iter().find(|(name, labels, _)| {
        name == "refmcp_tool_call_seconds_count" && labels.get("tool").is_some_and(|tool| tool == "echo")
    });
    assert_eq!(count.unwrap().2, 3.0);
}

fn nothing(name: impl Into<String>) -> Tool {
    Tool::new(name, "Does nothing", async |_: Call, NoArguments {}| Ok("")).inline()
}

/// The page of a server, as an application shows it to its operators.
async fn page_of(server: &Server) -> BTreeMap<String, Family> {
    let endpoint = Endpoint::builder(server.clone()).build();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, endpoint.ops_router()).await });
    let reply = send(address, "GET", "/metrics", &[], b"").await;
    assert_eq!(reply.status, 200);
    parse(&reply.text().await)
}

fn tools_of(families: &BTreeMap<String, Family>) -> HashSet<&str> {
    let samples = &families["refmcp_tool_calls_total"].samples;
    samples.iter().map(|(_, labels, _)| labels["tool"].as_str()).collect()
}

#[tokio::test]
async fn only_existing_tools_are_labels_up_to_a_limit() {
    let server = Server::builder("a \"strange\\ name\n", "1").tool(nothing("here")).build().unwrap();
    for strange in ["quote\"", "back\\slash", "line\nbreak", "(other)"] {
        server.change_lists(|lists| lists.add_tool(nothing(strange))).unwrap();
    }
    let families = page_of(&server).await;
    let all = HashSet::from(["here", "quote\"", "back\\slash", "line\nbreak", "(other)"]);
    assert_eq!(tools_of(&families), all);
    assert_eq!(families["refmcp_build_info"].samples[0].1["server"], "a \"strange\\ name\n");
    server.change_lists(|lists| lists.remove_tool("here"));
    assert!(!tools_of(&page_of(&server).await).contains("here"));
    for number in 0..1000 {
        server.change_lists(|lists| lists.add_tool(nothing(format!("t{number}")))).unwrap();
    }
    assert_eq!(
        tools_of(&page_of(&server).await).len(),
        256,
        "one that is called as the rest has none of its own"
    );
}
