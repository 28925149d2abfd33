//! Session ids and event ids that are wrong, and sessions that end while they are used.

use std::time::Duration;

use refmcp_http::Options;
use refmcp_testkit::paused::PausedTime;
use serde_json::json;

use crate::support::{Client, LATEST_SESSION, Site, request};

const METHODS: [&str; 3] = ["POST", "GET", "DELETE"];

/// The statuses of a request of each method with these lines in its head.
async fn statuses(site: &Site, lines: &[u8]) -> Vec<u16> {
    let mut statuses = Vec::new();
    for method in METHODS {
        let body = if method == "POST" { request("ping", json!({})).to_string() } else { String::new() };
        let mut sent = site.head(method, "/mcp").into_bytes();
        sent.extend(format!("MCP-Protocol-Version: {LATEST_SESSION}\r\n").bytes());
        sent.extend(lines);
        sent.extend(format!("Content-Length: {}\r\n\r\n{body}", body.len()).bytes());
        let reply = site.send_raw(sent).await;
        statuses.push(reply.as_ref().map_or(0, |reply| reply.status));
        let Some(reply) = reply else { continue };
        let echoed = reply.names().any(|name| name == "x-injected" || name == "mcp-session-id");
        assert!(!echoed, "{method} {}", String::from_utf8_lossy(lines));
        // A message that could be read is answered with a JSON-RPC error.
        if method == "POST" && reply.status >= 400 && reply.header("content-length") != Some("0") {
            let body = reply.json().await;
            assert_eq!((&body["id"], &body["error"]["code"]), (&json!(1), &json!(-32600)), "{body}");
        }
    }
    statuses
}

#[tokio::test]
async fn a_session_id_is_sent_once_and_exists() {
    let time = PausedTime::start();
    let idle = Duration::from_secs(60);
    let site = Site::usual().await;
    let client = Client::open(&site, LATEST_SESSION).await;
    let deleted = Client::open(&site, LATEST_SESSION).await;
    assert_eq!((deleted.delete().await, deleted.delete().await), (204, 404));
    let short = Site::open(Options { session_timeout: idle, ..Options::default() }).await;
    let expired = Client::open(&short, LATEST_SESSION).await;
    time.advance(idle * 2).await;
    short.until_metric("refmcp_sessions{transport=\"streamable\"}", 0.0).await;
    drop(time);
    let id = |text: &str| format!("Mcp-Session-Id: {text}\r\n").into_bytes();
    for (what, lines, status) in [
        ("missing", Vec::new(), 400),
        ("empty", id(""), 404),
        ("blank", id("  \t "), 404),
        ("unknown", id("unknown"), 404),
        ("deleted", id(&deleted.session), 404),
        ("of another server", id(&expired.session), 404),
        ("cut", id(&client.session[1..]), 404),
        ("in other case", id(&swap_case(&client.session)), 404),
        ("quoted", id(&format!("\"{}\"", client.session)), 404),
        ("two in one", id(&format!("{0}, {0}", client.session)), 404),
        ("two", [id(&client.session), id(&client.session)].concat(), 400),
        ("not text", b"Mcp-Session-Id: \xff\xfe\r\n".to_vec(), 400),
        ("with a line break", id(&format!("{}%0d%0aX-Injected:%20yes", client.session)), 404),
        ("folded", id(&format!("{}\r\n folded", client.session)), 400),
        ("with NUL", id("a\0b"), 400),
        ("long", id(&"x".repeat(32 << 10)), 404),
        ("a path", id("../../etc/passwd"), 404),
    ] {
        assert_eq!(statuses(&site, &lines).await, [status; 3], "{what}");
        client.is_served().await;
    }
    let endless = statuses(&site, &id(&"x".repeat(1 << 20))).await;
    assert!(endless.iter().all(|status| [0, 431].contains(status)), "{endless:?}");
    assert_eq!(statuses(&short, &id(&expired.session)).await, [404; 3], "expired");
    // A line that ends early makes another header of the rest, which means nothing.
    let split = id(&format!("{}\r\nX-Injected: yes", client.session));
    assert_eq!(statuses(&site, &split).await, [200, 200, 204]);
    site.serves().await;
    short.serves().await;
}

fn swap_case(text: &str) -> String {
    let swapped = |letter: char| {
        if letter.is_ascii_uppercase() { letter.to_ascii_lowercase() } else { letter.to_ascii_uppercase() }
    };
    text.chars().map(swapped).collect()
}

#[tokio::test]
async fn a_last_event_id_is_well_formed() {
    let site = Site::usual().await;
    let client = Client::open(&site, LATEST_SESSION).await;
    let other = Client::open(&site, LATEST_SESSION).await;
    let steps = json!({ "n": 2, "ms": 1 });
    let events = client.call_with_progress(7, "steps", steps.clone()).await.events().await;
    let foreign = other.call_with_progress(7, "steps", steps).await.events().await;
    // The other has fewer streams than that.
    client.call_with_progress(8, "steps", json!({ "n": 1, "ms": 1 })).await.events().await;
    let last = client.call_with_progress(9, "steps", json!({ "n": 1, "ms": 1 })).await.events().await;
    let last = last[0].0.clone().unwrap();
    let good = events[0].0.clone().unwrap();
    let named = client.headers().map(|(name, value)| format!("{name}: {value}\r\n")).concat();
    for (what, lines) in [
        ("empty", b"Last-Event-ID: \r\n".to_vec()),
        ("not text", b"Last-Event-ID: \xff\r\n".to_vec()),
        ("two", format!("Last-Event-ID: {good}\r\nLast-Event-ID: {good}\r\n").into_bytes()),
        ("two in one", format!("Last-Event-ID: {good}, {good}\r\n").into_bytes()),
        ("long", format!("Last-Event-ID: {}\r\n", "1".repeat(32 << 10)).into_bytes()),
        ("with a line break", format!("Last-Event-ID: {good}%0a1.1\r\n").into_bytes()),
        ("signed", format!("Last-Event-ID: +{good}\r\n").into_bytes()),
        ("in hexadecimal", b"Last-Event-ID: 0x1.0x1\r\n".to_vec()),
    ] {
        let mut sent = (site.head("GET", "/mcp") + &named).into_bytes();
        sent.extend(lines);
        sent.extend(b"\r\n");
        assert_eq!(site.send_raw(sent).await.unwrap().status, 400, "{what}");
        client.is_served().await;
    }
    assert_eq!(other.get(Some(&last)).await.status, 400, "of another session");
    assert_eq!(client.get(Some(&good)).await.events().await, events[1..]);
    // The same number in another session is another event.
    let again = other.get(foreign[0].0.as_deref()).await.events().await;
    assert_eq!(again, foreign[1..]);
    site.serves().await;
}

#[tokio::test]
async fn only_the_latest_of_many_readers_reads() {
    let site = Site::usual().await;
    let client = Client::open(&site, LATEST_SESSION).await;
    let mut readers = Vec::new();
    for _ in 0..100 {
        let reader = client.get(None).await;
        assert_eq!(reader.status, 200);
        readers.push(reader);
    }
    site.until_metric("refmcp_streams", 1.0).await;
    site.server.changed(&refmcp_proto::engine::Change::Tools);
    let mut last = readers.pop().unwrap();
    let (_, told) = last.event().await.unwrap();
    assert_eq!(told["method"], "notifications/tools/list_changed");
    for reader in readers {
        assert_eq!(reader.events().await, [], "sent away, with nothing");
    }
    drop(last);
    site.until_metric("refmcp_streams", 0.0).await;
    client.is_served().await;
    site.serves().await;
}

#[tokio::test]
async fn ending_a_session_ends_its_streams_and_calls() {
    let site = Site::usual().await;
    let client = Client::open(&site, LATEST_SESSION).await;
    let bystander = Client::open(&site, LATEST_SESSION).await;
    let theirs = bystander.call_with_progress(1, "slow", json!({ "ms": 500 })).await;
    let standing = client.get(None).await;
    let mut watched = client.call_with_progress(1, "steps", json!({ "n": 100_000, "ms": 5 })).await;
    watched.event().await.unwrap();
    let waiting = client.call(2, "slow", json!({ "ms": 1_000_000 }));
    let ending = async {
        site.until_metric("refmcp_requests_in_flight", 1.0).await;
        client.delete().await
    };
    let (waiting, status) = tokio::join!(waiting, ending);
    assert_eq!(status, 204);
    // It received nothing, or the end.
    assert!(waiting.is_sse() || waiting.status >= 400, "{}", waiting.status);
    assert_eq!(standing.events().await, []);
    let rest = watched.events().await;
    assert!(rest.iter().all(|(_, message)| message["method"] == "notifications/progress"));
    site.until_ended(2).await;
    assert_eq!(client.delete().await, 404);
    assert_eq!(theirs.answer().await["id"], 1, "others go on");
    site.serves().await;
}

#[tokio::test]
async fn an_idle_session_ends_for_every_method_at_once() {
    let time = PausedTime::start();
    let idle = Duration::from_secs(60);
    let site = Site::open(Options { session_timeout: idle, ..Options::default() }).await;
    let moment = Duration::from_millis(1);
    for (unused, status) in [(idle - moment, 200), (idle + moment, 404), (idle * 2, 404)] {
        let client = Client::open(&site, LATEST_SESSION).await;
        // The last request counts, not the opening.
        time.advance(idle / 2).await;
        client.is_served().await;
        time.advance(unused).await;
        let (pinged, listened) = (client.post(&request("ping", json!({}))).await, client.get(None).await);
        let watched = client.call_with_progress(2, "steps", json!({ "n": 1, "ms": 0 })).await;
        assert_eq!([pinged.status, listened.status, watched.status], [status; 3], "{unused:?}");
    }
    site.serves().await;
}
