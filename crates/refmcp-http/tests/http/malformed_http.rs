//! Malformed HTTP: refused with a status, without harm to other clients.

use std::time::Duration;

use refmcp_http::Options;
use serde_json::json;

use crate::support::http1::Reply;
use crate::support::{BOTH_KINDS, Client, LATEST_SESSION, Site, initialize_params, request, text_of};

fn ping() -> String {
    request("ping", json!({})).to_string()
}

/// A whole POST of this body, with these headers beside the usual ones.
fn post(site: &Site, more: &str, body: &str) -> String {
    format!("{}{more}Content-Length: {}\r\n\r\n{body}", site.head("POST", "/mcp"), body.len())
}

fn named(client: &Client<'_>) -> String {
    client.headers().map(|(name, value)| format!("{name}: {value}\r\n")).concat()
}

#[tokio::test]
async fn a_body_must_be_declared_as_json() {
    let site = Site::usual().await;
    let client = Client::open(&site, LATEST_SESSION).await;
    let kinds: [(&[&str], u16); 14] = [
        (&["application/json"], 200),
        (&["Application/JSON; charset=\"UTF-8\""], 200),
        (&["application/json;charset=utf-8"], 200),
        (&["application/json; profile=x"], 200),
        (&[], 415),
        (&[""], 415),
        (&["text/plain"], 415),
        (&["text/json"], 415),
        (&["application/jsonp"], 415),
        (&["application/json;charset=utf-16"], 415),
        (&["application/x-www-form-urlencoded"], 415),
        (&["multipart/form-data; boundary=x"], 415),
        (&["application/json", "text/plain"], 415),
        (&["application/json, text/plain"], 415),
    ];
    for (kinds, status) in kinds {
        let lines: String = kinds.iter().map(|kind| format!("Content-Type: {kind}\r\n")).collect();
        let sent =
            post(&site, &named(&client), &ping()).replace("Content-Type: application/json\r\n", &lines);
        assert_eq!(site.send_raw(sent).await.unwrap().status, status, "{kinds:?}");
    }
    client.is_served().await;
    site.serves().await;
}

#[tokio::test]
async fn accept_must_allow_json_and_events() {
    let site = Site::usual().await;
    let client = Client::open(&site, LATEST_SESSION).await;
    let accepts: [(&[&str], u16, u16); 10] = [
        (&[BOTH_KINDS], 200, 200),
        (&["text/event-stream", "application/json"], 200, 200),
        (&["APPLICATION/JSON;q=0.5, Text/Event-Stream"], 200, 200),
        (&["*/*"], 200, 200),
        (&[], 406, 406),
        (&[""], 406, 406),
        (&["application/json"], 406, 406),
        (&["text/event-stream"], 406, 200),
        (&["text/html"], 406, 406),
        (&["application/json, text/event-stream;q=0"], 406, 406),
    ];
    for (accepts, of_post, of_get) in accepts {
        let lines: String = accepts.iter().map(|kinds| format!("Accept: {kinds}\r\n")).collect();
        let usual = format!("Accept: {BOTH_KINDS}\r\n");
        let sent = post(&site, &named(&client), &ping()).replace(&usual, &lines);
        assert_eq!(site.send_raw(sent).await.unwrap().status, of_post, "POST {accepts:?}");
        for (path, more) in [("/mcp", named(&client)), ("/sse", String::new())] {
            let sent = format!("{}{more}\r\n", site.head("GET", path)).replace(&usual, &lines);
            assert_eq!(site.send_raw(sent).await.unwrap().status, of_get, "GET {path} {accepts:?}");
        }
    }
    client.is_served().await;
    site.serves().await;
}

/// A smuggled request: the next server behind a proxy may take it for a second one.
const HIDDEN: &str = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";

#[tokio::test]
async fn ambiguous_body_lengths_are_refused() {
    let short = Duration::from_millis(300);
    let site = Site::open(Options { body_timeout: short, ..Options::default() }).await;
    let client = Client::open(&site, LATEST_SESSION).await;
    let head = site.head("POST", "/mcp") + &named(&client);
    let (ping, length) = (ping(), ping().len());
    let chunked = format!("{length:x}\r\n{ping}\r\n0\r\n\r\n{HIDDEN}");
    for (framing, body) in [
        ("Content-Length: 5\r\nContent-Length: 6", "12345".to_owned()),
        ("Content-Length: 5, 6", "12345".to_owned()),
        ("Content-Length: +5", "12345".to_owned()),
        ("Content-Length: -5", "12345".to_owned()),
        ("Content-Length: 5 5", "12345".to_owned()),
        ("Content-Length: 0x5", "12345".to_owned()),
        ("Content-Length: 99999999999999999999999", "12345".to_owned()),
        ("Content-Length:", "12345".to_owned()),
        ("Transfer-Encoding: identity", chunked.clone()),
        ("Transfer-Encoding: gzip", chunked.clone()),
        ("Transfer-Encoding: chunked, identity", chunked.clone()),
        ("Transfer-Encoding: xchunked", chunked.clone()),
        ("Transfer-Encoding : chunked", chunked.clone()),
        ("Transfer-Encoding: chunked\r\n gzip", chunked.clone()),
    ] {
        let reply = site.send_raw(format!("{head}{framing}\r\n\r\n{body}{HIDDEN}")).await;
        if let Some(reply) = reply {
            assert_eq!(reply.status, 400, "{framing}");
            assert!(reply.again(b"").await.is_none(), "nothing more is read: {framing}");
        }
        client.is_served().await;
    }
    for broken in
        ["x\r\n", "-1\r\n12345", "5\r\n12345678", "fffffffffffffffff\r\n", "5;\n12345\r\n", "\r\n\r\n"]
    {
        let reply = site.send_raw(format!("{head}Transfer-Encoding: chunked\r\n\r\n{broken}")).await;
        if let Some(reply) = reply {
            assert!([400, 408].contains(&reply.status), "{broken:?} {}", reply.status);
            assert!(reply.again(b"").await.is_none(), "nothing more is read: {broken:?}");
        }
        client.is_served().await;
    }
    let twice = format!("Content-Length: {length}\r\nContent-Length: {length}\r\n\r\n{ping}{HIDDEN}");
    let reply = site.send_raw(format!("{head}{twice}")).await.unwrap();
    assert_eq!(reply.status, 200, "said twice in the same words");
    assert_eq!(reply.again(b"").await.unwrap().text().await, "alive\n");
    // With two lengths, of which only one counts, the connection is closed.
    for framing in
        ["Content-Length: 4\r\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked\r\nContent-Length: 4"]
    {
        if let Some(reply) = site.send_raw(format!("{head}{framing}\r\n\r\n{chunked}")).await {
            assert!([200, 400].contains(&reply.status), "{framing}");
            assert!(reply.again(b"").await.is_none(), "{framing}");
        }
        client.is_served().await;
    }
    site.serves().await;
}

#[tokio::test]
async fn a_wrong_content_length_harms_only_its_connection() {
    let short = Duration::from_millis(300);
    let site = Site::open(Options { body_timeout: short, ..Options::default() }).await;
    let client = Client::open(&site, LATEST_SESSION).await;
    let head = site.head("POST", "/mcp") + &named(&client);
    // Too short: the rest is no request.
    let reply = site.send_raw(format!("{head}Content-Length: 5\r\n\r\n{}", ping())).await.unwrap();
    assert_eq!(reply.status, 400);
    let rest = reply.again(b"").await;
    assert!(rest.is_none_or(|reply| reply.status == 400));
    // Too long: the rest never comes.
    let reply = site.send_raw(format!("{head}Content-Length: 5000\r\n\r\n{}", ping())).await.unwrap();
    assert_eq!(reply.status, 408);
    // No body at all.
    let reply = site.send_raw(format!("{head}\r\n")).await.unwrap();
    assert_eq!((reply.status, reply.json().await["error"]["code"].as_i64()), (400, Some(-32700)));
    client.is_served().await;
    site.serves().await;
}

#[tokio::test]
async fn a_connection_goes_on_after_an_error() {
    let site = Site::usual().await;
    let client = Client::open(&site, LATEST_SESSION).await;
    let good = post(&site, &named(&client), &ping());
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", site.address);
    let mut reply = site.send_raw(&good).await.unwrap();
    for (bad, status) in [
        (get("/nothing"), 404),
        (get("/mcp"), 400),
        (get("/mcp").replace("Host: 127", "Host: 128"), 403),
        (post(&site, "", &ping()), 400),
        (post(&site, "Mcp-Session-Id: unknown\r\n", &ping()), 404),
        (post(&site, &named(&client), "{"), 400),
        (post(&site, &named(&client), "{}").replace("POST", "PUT"), 405),
        (post(&site, "Content-Encoding: gzip\r\n", "{}"), 415),
        (post(&site, "", "{}").replace("Accept: ", "Accept: text/html;q="), 406),
    ] {
        let refused = reply.again(bad.as_bytes()).await.unwrap();
        assert_eq!(refused.status, status, "{bad}");
        let next = refused.again(good.as_bytes()).await;
        reply = next.unwrap_or_else(|| panic!("closed after {bad}"));
        assert_eq!(reply.status, 200, "after {bad}");
    }
    site.serves().await;
}

#[tokio::test]
async fn expect_continue_is_answered_before_the_body() {
    let site = Site::usual().await;
    let client = Client::open(&site, LATEST_SESSION).await;
    let (ping, expect) = (ping(), "Expect: 100-continue\r\n");
    let head = post(&site, &(named(&client) + expect), &ping).replace(&ping, "");
    let reply = site.send_raw(&head).await.unwrap();
    assert_eq!(reply.status, 100);
    assert_eq!(reply.again(ping.as_bytes()).await.unwrap().json().await["result"], json!({}));
    for (bad, status) in [
        (head.replace("application/json\r\n", "text/plain\r\n"), 415),
        (head.replace("Host: 127", "Host: 128"), 403),
        (head.replace("Content-Length: ", "Content-Length: 999999"), 413),
    ] {
        assert_eq!(site.send_raw(bad).await.unwrap().status, status, "at once");
    }
    client.is_served().await;
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let site = Site::usual().await;
    let client = Client::open(&site, LATEST_SESSION).await;
    let echo = |text: &str| {
        let params = json!({ "name": "echo", "arguments": { "message": text } });
        post(&site, &named(&client), &request("tools/call", params).to_string())
    };
    let many: String = (0..50).map(|number| echo(&number.to_string())).collect();
    let mut reply = site.send_raw(many + HIDDEN).await.unwrap();
    for number in 0..50 {
        assert_eq!(reply.status, 200);
        reply = match reply.answer_and_next().await {
            (answer, Some(next)) if answer.contains(&format!("\"{number}\"")) => next,
            other => panic!("{number}: {other:?}"),
        };
    }
    assert_eq!(reply.text().await, "alive\n");
    // A client that has begun with the next request still gets its answer, and the events of a stream.
    let reply = site.send_raw(echo("first") + "POST /m").await.unwrap();
    assert!(reply.text().await.contains("first"));
    let arguments = json!({ "n": 100_000, "ms": 10 });
    let params = json!({ "name": "steps", "arguments": arguments, "_meta": { "progressToken": 1 } });
    let watch = post(&site, &named(&client), &request("tools/call", params).to_string());
    let mut stream = site.send_raw(watch + "POST /m").await.unwrap();
    assert!(stream.event().await.is_some());
    site.serves().await;
}

impl Reply {
    /// The body, and the next response on the connection.
    async fn answer_and_next(mut self) -> (String, Option<Self>) {
        let mut whole = Vec::new();
        while let Some(piece) = self.piece().await {
            whole.extend(piece);
        }
        (String::from_utf8(whole).unwrap(), self.again(b"").await)
    }
}

#[tokio::test]
async fn upgrade_and_override_headers_change_nothing() {
    let site = Site::usual().await;
    let client = Client::open(&site, LATEST_SESSION).await;
    let named = named(&client);
    for more in [
        "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n",
        "Connection: Upgrade\r\nUpgrade: TLS/1.0\r\n",
        "Connection: Mcp-Session-Id\r\n",
        "X-HTTP-Method-Override: DELETE\r\n",
        "X-Original-URL: /metrics\r\nX-Rewrite-URL: /metrics\r\n",
        "Expect: 200-ok\r\n",
    ] {
        let reply = site.send_raw(post(&site, &format!("{named}{more}"), &ping())).await.unwrap();
        assert_eq!(reply.status, 200, "{more}");
        assert_eq!(reply.json().await["result"], json!({}), "{more}");
    }
    // Forwarding headers of an untrusted client do not change its address.
    let near = json!({ "name": "near", "arguments": {} });
    for claimed in [("X-Forwarded-For", "10.0.0.1"), ("Forwarded", "for=10.0.0.1"), ("X-Real-IP", "10.0.0.1")]
    {
        let reply = site.stateless("tools/call", near.clone(), &[claimed]).await;
        assert_eq!(text_of(&reply.json().await), "true", "{claimed:?}");
    }
    for spoofed in ["X-Forwarded-Host: localhost", "Forwarded: host=localhost", "X-Original-Host: localhost"]
    {
        let initialize = request("initialize", initialize_params(LATEST_SESSION)).to_string();
        let sent = post(&site, &format!("{spoofed}\r\n"), &initialize);
        let sent = sent.replace(&format!("Host: {}", site.address), "Host: evil.com");
        assert_eq!(site.send_raw(sent).await.unwrap().status, 403, "{spoofed}");
    }
    client.is_served().await;
    site.serves().await;
}
