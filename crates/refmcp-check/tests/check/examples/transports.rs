//! Transports over HTTP.

use serde_json::{Value, json};

use super::{Example, SESSIONS, STATELESS, error, over_http, result, succeed};
use crate::altered::{Asked, Change, Reply};

pub(super) fn examples() -> Vec<Example> {
    let mut examples = vec![
        over_http(
            "foreign-origin",
            &["HTTP-02"],
            SESSIONS,
            Change::instead(|asked| {
                let foreign = asked.header("origin").is_some();
                foreign.then(|| {
                    Reply::new(200, &[result(asked, &json!({ "protocolVersion": SESSIONS.as_str() }))])
                })
            }),
        ),
        over_http(
            "get-stream",
            &["HTTP-01"],
            SESSIONS,
            Change::instead(|asked| (asked.http == "GET").then(|| Reply::new(404, &[]))),
        ),
        over_http(
            "missing-session",
            &["HTTP-20"],
            SESSIONS,
            Change::instead(|asked| {
                (asked.method() == "ping" && asked.header("mcp-session-id").is_none()).then(|| succeed(asked))
            }),
        ),
        over_http(
            "ended-session",
            &["HTTP-21"],
            SESSIONS,
            Change::after(|_, reply| {
                if reply.status == 404 {
                    reply.status = 400;
                }
            }),
        ),
        over_http(
            "version-header",
            &["HTTP-25"],
            SESSIONS,
            Change::instead(|asked| {
                (asked.header("mcp-protocol-version") == Some("refmcp")).then(|| succeed(asked))
            }),
        ),
        Example {
            beside: Some(Change {
                instead: |asked| {
                    let bare = asked.method() == "ping" && asked.header("mcp-protocol-version").is_none();
                    bare.then(|| Reply::new(200, &[result(asked, &json!({}))])).or_else(|| stateless(asked))
                },
                after: |_, reply| reply.headers.retain(|(name, _)| name != "mcp-session-id"),
            }),
            ..over_http(
                "version-header",
                &["HTTP-24"],
                SESSIONS,
                Change {
                    instead: |asked| {
                        let bare = asked.method() == "ping" && asked.header("mcp-protocol-version").is_none();
                        bare.then(|| Reply::new(400, &[error(asked, -32600)])).or_else(|| stateless(asked))
                    },
                    after: |_, reply| reply.headers.retain(|(name, _)| name != "mcp-session-id"),
                },
            )
        },
        over_http(
            "mirrored-headers",
            &["MHTTP-10"],
            STATELESS,
            Change::instead(|asked| asked.header("mcp-method").is_none().then(|| succeed(asked))),
        ),
        over_http(
            "mirrored-headers",
            &["MHTTP-08"],
            STATELESS,
            Change::instead(|asked| {
                (asked.header("mcp-protocol-version") == Some("1900-01-01")).then(|| succeed(asked))
            }),
        ),
        over_http(
            "ids-that-mean-nothing",
            &["MHTTP-01"],
            STATELESS,
            Change::instead(|asked| {
                asked.header("mcp-session-id").map(|_| Reply::new(404, &[error(asked, -32600)]))
            }),
        ),
    ];
    examples.push(Example {
        beside: Some(Change::instead(|asked| with_metadata(asked, &json!(["https://issuer.example"])))),
        ..over_http(
            "resource-metadata",
            &["AUTH-03"],
            SESSIONS,
            Change::instead(|asked| with_metadata(asked, &json!([]))),
        )
    });
    let streamed = |instead| Change { instead, after: |_, _| {} };
    examples.push(Example {
        beside: Some(streamed(|asked| events(asked, |asked| asked.id().to_string(), false))),
        ..over_http(
            "resumed-stream",
            &["HTTP-16"],
            SESSIONS,
            streamed(|asked| events(asked, |_| "same".to_owned(), false)),
        )
    });
    examples.push(Example {
        beside: Some(streamed(|asked| events(asked, |asked| asked.id().to_string(), false))),
        ..over_http(
            "resumed-stream",
            &["HTTP-17"],
            SESSIONS,
            streamed(|asked| events(asked, |asked| asked.id().to_string(), true)),
        )
    });
    examples
}

/// A server that gives its sessions no ids answers all else by itself.
fn stateless(asked: &Asked) -> Option<Reply> {
    match asked.method() {
        "initialize" => None,
        _ if asked.header("mcp-protocol-version") == Some("refmcp") => Some(Reply::new(400, &[])),
        _ if asked.message.get("id").is_none() => Some(Reply { texts: Vec::new(), ..Reply::new(202, &[]) }),
        _ => Some(succeed(asked)),
    }
}

/// Pings are answered by a stream with event ids, and a stream that is resumed has the response of its ping, and perhaps that of
/// the next too.
fn events(asked: &Asked, event_id: fn(&Asked) -> String, another: bool) -> Option<Reply> {
    let stream = |id: &str, responses: &[Value]| {
        let mut text = format!("id: {id}-0\ndata:\n\n");
        for (response, number) in responses.iter().zip(1..) {
            text += &format!("id: {id}-{number}\ndata: {response}\n\n");
        }
        let headers = vec![("content-type".to_owned(), "text/event-stream".to_owned())];
        Some(Reply { status: 200, headers, texts: vec![text], ends: false })
    };
    if asked.method() == "ping" {
        return stream(&event_id(asked), &[result(asked, &json!({}))]);
    }
    let last = asked.header("last-event-id").filter(|_| asked.http == "GET")?;
    let id: i64 = last.split('-').next()?.parse().ok()?;
    let response = |id: i64| json!({ "jsonrpc": "2.0", "id": id, "result": {} });
    let responses = [response(id), response(id + 1)];
    stream("resumed", if another { &responses } else { &responses[..1] })
}

/// A server that lets clients in which have a session, and has metadata for others.
fn with_metadata(asked: &Asked, servers: &Value) -> Option<Reply> {
    if asked.http == "GET" && asked.header("accept") == Some("application/json") {
        return Some(Reply::new(200, &[json!({ "authorization_servers": servers })]));
    }
    let challenge = ("www-authenticate".to_owned(), "Bearer".to_owned());
    let is_stranger = asked.method() == "ping" && asked.header("mcp-session-id").is_none();
    is_stranger.then(|| Reply { headers: vec![challenge], ..Reply::new(401, &[]) })
}
