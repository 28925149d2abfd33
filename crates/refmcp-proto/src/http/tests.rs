//! Each decision about a POST as a row: headers, body, what becomes of it.

use std::sync::Arc;

use super::*;
use crate::engine::Sealer;
use crate::jsonrpc::{Limits, decode};
use crate::model::{Implementation, ServerCapabilities};

const SESSION: &str = "2025-11-25";
const STATELESS: &str = "2026-07-28";
const META: &str = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

#[derive(Debug)]
struct NoSealer;

impl Sealer for NoSealer {
    fn seal(&self, _: &[u8], _: &[u8]) -> String {
        String::new()
    }

    fn open(&self, _: &[u8], _: &str) -> Option<Vec<u8>> {
        None
    }
}

fn config() -> EngineConfig {
    EngineConfig::new(Implementation::new("s", "1"), ServerCapabilities::default(), Arc::new(NoSealer))
}

fn request(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#)
}

fn notification(params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{params}}}"#)
}

fn headers(version: Option<&str>) -> PostHeaders<'_> {
    PostHeaders { version: Ok(version), session: true, accept: Accept::Allowed }
}

/// What becomes of a body, in short: the route, or the refusal and its code.
fn outcome(headers: PostHeaders<'_>, body: &str) -> String {
    let routed = match decode(body.as_bytes(), &Limits::default()) {
        Ok(incoming) => route_post(&config(), &PeerCache::default(), headers, true, &incoming),
        Err(error) => Err(malformed_post(headers.accept, true, &error)),
    };
    match routed {
        Ok(PostRoute::Stateless(version)) => format!("Stateless {version}"),
        Ok(route) => format!("{route:?}"),
        Err(PostRefusal::NotAcceptable(why)) => format!("NotAcceptable: {why}"),
        Err(PostRefusal::Session(error)) => format!("Session {}", error.code),
        Err(PostRefusal::Revision(error)) => format!("Revision {}", error.code),
        Err(PostRefusal::Header(finding, error)) => format!("{} {}", finding.rule, error.code),
        Err(PostRefusal::Message(_, error)) => format!("Message {}", error.code),
    }
}

#[test]
fn the_message_decides_the_lifecycle() {
    let stateless = format!(r#"{{"_meta":{META}}}"#);
    let only_version = r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#;
    let bad_capabilities = format!(r#"{{"_meta":{}}}"#, META.replace("{}", "7"));
    let later = format!(r#"{{"_meta":{}}}"#, META.replace("2026-07-28", "2027-\\u0030"));
    let response = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    let misplaced = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","_meta":{META}}}"#);
    let rows = [
        (Some(SESSION), request("ping", "{}"), "Request(StreamAfterDelay)"),
        (None, request("ping", "{}"), "Request(StreamAfterDelay)"),
        (Some(SESSION), notification("{}"), "Message"),
        (None, response.to_owned(), "Message"),
        (Some(STATELESS), request("tools/list", &stateless), "Stateless 2026-07-28"),
        // The header cannot move a message that says what it is; a mismatch is found later.
        (Some(SESSION), request("tools/list", &stateless), "Stateless 2026-07-28"),
        (None, request("tools/list", &later), "Stateless 2027-0"),
        (None, request("initialize", &stateless), "Stateless 2026-07-28"),
        (None, notification(&stateless), "Ignored"),
        // The session refuses them for their header.
        (Some(STATELESS), notification("{}"), "Message"),
        (Some(STATELESS), response.to_owned(), "Message"),
        (Some(STATELESS), request("ping", "{}"), "Message -32602"),
        (None, request("ping", only_version), "Message -32602"),
        (None, request("ping", &bad_capabilities), "Message -32602"),
        (None, request("ping", r#"{"_meta":[]}"#), "Message -32602"),
        (None, misplaced, "Message -32602"),
        (Some("1999-01-01"), request("ping", "{}"), "Revision -32022"),
        (Some("1999-01-01"), notification("{}"), "Revision -32022"),
        (None, request("initialize", "{}"), "Session -32600"),
        (None, "{".to_owned(), "Message -32700"),
        (None, "[]".to_owned(), "Message -32600"),
    ];
    for (version, body, expected) in rows {
        let expected = expected.replace("-32022", &code::UNSUPPORTED_VERSION.to_string());
        assert_eq!(outcome(headers(version), &body), expected, "{version:?} {body}");
    }
    let outside = PostHeaders { session: false, ..headers(None) };
    assert_eq!(outcome(outside, &request("initialize", "{}")), "Open");
    let stateless = PostHeaders { session: false, ..headers(Some(STATELESS)) };
    assert_eq!(outcome(stateless, &notification("{}")), "Ignored");
    assert_eq!(outcome(stateless, response), "Message -32600");
    let unreadable = PostHeaders { version: Err("more than one"), ..headers(None) };
    assert_eq!(
        outcome(unreadable, &request("ping", "{}")),
        "Request(StreamAfterDelay)",
        "the session refuses it"
    );
    let unreadable = PostHeaders { session: false, ..unreadable };
    assert_eq!(outcome(unreadable, &request("ping", "{}")), "Revision -32600");
}

#[test]
fn only_a_progress_token_of_the_request_makes_a_stream_at_once() {
    for (params, expected) in [
        (r#"{"_meta":{"progressToken":1}}"#, "Request(Stream)"),
        (r#"{"_meta":{"other":{"progressToken":1}}}"#, "Request(StreamAfterDelay)"),
        (r#"{"_meta":{"text":"\"progressToken\""}}"#, "Request(StreamAfterDelay)"),
        (r#"{"arguments":{"_meta":{"progressToken":1}}}"#, "Request(StreamAfterDelay)"),
    ] {
        assert_eq!(outcome(headers(None), &request("tools/call", params)), expected, "{params}");
    }
}

#[test]
fn batches_have_requests_or_none() {
    let (ping, note) = (request("ping", "{}"), notification("{}"));
    // An `id` or a `method` inside of a message makes no request.
    let nested = r#"{"jsonrpc":"2.0","id":1,"result":{"method":"ping"}}"#;
    for (body, expected) in [
        (format!("[{note},{ping}]"), "Batch { has_requests: true }"),
        (format!("[{note}]"), "Batch { has_requests: false }"),
        (format!("[{nested}]"), "Batch { has_requests: false }"),
        (format!("[7,{note}]"), "Batch { has_requests: false }"),
    ] {
        assert_eq!(outcome(headers(None), &body), expected, "{body}");
        assert_eq!(
            outcome(headers(Some(STATELESS)), &body),
            expected,
            "the session says what is wrong: {body}"
        );
        let alone = PostHeaders { session: false, ..headers(Some(STATELESS)) };
        assert_eq!(outcome(alone, &body), "Message -32600", "{body}");
    }
}

#[test]
fn what_has_a_response_must_be_accepted() {
    let absent = PostHeaders { accept: Accept::Absent, ..headers(None) };
    let refused = PostHeaders { accept: Accept::Refused, ..headers(None) };
    for body in [request("ping", "{}"), "{".to_owned(), "[7]".to_owned()] {
        assert!(outcome(absent, &body).starts_with("NotAcceptable: no Accept header"), "{body}");
        assert!(outcome(refused, &body).starts_with("NotAcceptable: Accept must allow"), "{body}");
    }
    for body in [notification("{}"), format!("[{}]", notification("{}"))] {
        assert!(!outcome(refused, &body).starts_with("NotAcceptable"), "{body}");
    }
    assert_eq!(check_accept(Accept::Absent, false, &["a/b"]), Ok(()));
    assert!(missing_accept(Accept::Absent, AcceptRule::Get).is_some());
    assert!(missing_accept(Accept::Allowed, AcceptRule::Post).is_none());
}

#[test]
fn the_version_header_of_a_session() {
    let rules = SESSION.parse::<Revision>().unwrap().rules();
    assert_eq!(check_session_version(Some(SESSION), rules, true), Ok(None));
    let refused = |version, rules| check_session_version(version, rules, true).unwrap_err();
    let wrong = refused(Some(STATELESS), rules);
    assert_eq!(wrong.why, "MCP-Protocol-Version is 2026-07-28, but this session agreed on 2025-11-25");
    assert_eq!(wrong.finding.unwrap().rule.id, "LIFE-09");
    assert!(!refused(Some("the-token"), rules).why.contains("the-token"));
    assert!(refused(None, rules).why.contains("no MCP-Protocol-Version"));
    assert_eq!(check_session_version(None, rules, false).unwrap().unwrap().rule.id, "LIFE-09");
    let first = "2025-03-26".parse::<Revision>().unwrap().rules();
    assert_eq!(check_session_version(None, first, true), Ok(None), "it has no such header");
    assert_eq!(refused(Some(SESSION), first).finding, None, "nor a rule about it");
    assert!(names_stateless(Some(STATELESS)));
    assert!(!names_stateless(Some(SESSION)) && !names_stateless(None) && !names_stateless(Some("x")));
}

#[test]
fn errors_of_stateless_requests_have_a_status() {
    let status = |lifecycle, error| status_of_response(lifecycle, error);
    assert_eq!(status(Lifecycle::PerRequest, Some(code::METHOD_NOT_FOUND)), 404);
    assert_eq!(status(Lifecycle::Handshake, Some(code::METHOD_NOT_FOUND)), 200);
    assert_eq!(status(Lifecycle::PerRequest, Some(code::HEADER_MISMATCH)), 400);
    assert_eq!(status(Lifecycle::Handshake, Some(code::INVALID_REQUEST)), 400);
    assert_eq!(status(Lifecycle::PerRequest, Some(code::INVALID_PARAMS)), 200);
    assert_eq!(status(Lifecycle::PerRequest, None), 200);
}

#[test]
fn headers_mirror_the_body() {
    let body =
        request("tools/call", r#"{"name":"t","arguments":{"city":"Ulm","count":42,"dry":true,"x":null}}"#);
    let Ok(Incoming::One(Message::Request(request))) = decode(body.as_bytes(), &Limits::default()) else {
        panic!("no request")
    };
    let right = [
        ("mcp-protocol-version", STATELESS),
        ("mcp-method", "tools/call"),
        ("mcp-name", "t"),
        ("mcp-param-city", "Ulm"),
        ("mcp-param-count", "42.0"),
        ("mcp-param-dry", "true"),
    ];
    let check = |headers: &[(&str, &'static str)]| {
        let header = |name: &str| {
            let found = headers.iter().find(|(known, _)| *known == name);
            Ok(found.map(|(_, value)| Cow::Borrowed(*value)))
        };
        let names = ["City", "count", "dry", "x", "absent"];
        let mirrored = |_: &str| {
            let path = |name: &str| vec![name.to_ascii_lowercase()];
            names.map(|name| ParamHeader { name: name.to_owned(), path: path(name) }).to_vec()
        };
        check_mirrored(header, mirrored, STATELESS, &request.method, &request.params)
    };
    assert_eq!(check(&right), Ok(()));
    for wrong in 0..right.len() {
        let mut headers = right.to_vec();
        headers[wrong].1 = "the-secret";
        let rule = ["MHTTP-08", "MHTTP-09", "MHTTP-09", "MHTTP-13"][wrong.min(3)];
        let refused = |headers: &[(&str, &'static str)]| match check(headers) {
            Err(PostRefusal::Header(broken, error)) if broken.rule.id == rule => error,
            other => panic!("{headers:?}: {other:?}"),
        };
        let error = refused(&headers);
        assert_eq!(error.code, code::HEADER_MISMATCH, "{headers:?}");
        let (header, value) = right[wrong];
        let differs = error.message.starts_with(&format!("{header} differs from "));
        assert!(differs && !error.message.contains("the-secret"), "{error}");
        assert!(value == "t" || !error.message.contains(value), "no value is repeated: {error}");
        headers.remove(wrong);
        let error = refused(&headers);
        assert_eq!(error.code, code::HEADER_MISMATCH, "{headers:?}");
        assert!(error.message.starts_with("no mcp-"), "{error}");
    }
}

#[test]
fn the_name_is_the_member_that_the_method_says() {
    for (method, params, name) in [
        ("tools/call", r#"{"name":"a"}"#, "a"),
        ("prompts/get", r#"{"name":"a"}"#, "a"),
        ("resources/read", r#"{"uri":"a:b"}"#, "a:b"),
        ("tasks/get", r#"{"taskId":"a"}"#, "a"),
        ("tasks/update", r#"{"taskId":"a","inputResponses":{}}"#, "a"),
        ("tasks/cancel", r#"{"taskId":"a"}"#, "a"),
    ] {
        let body = request(method, params);
        let Ok(Incoming::One(Message::Request(request))) = decode(body.as_bytes(), &Limits::default()) else {
            panic!("no request")
        };
        let check = |named: Option<&'static str>| {
            let header = |header: &str| {
                Ok(match header {
                    "mcp-protocol-version" => Some(Cow::Borrowed(STATELESS)),
                    "mcp-method" => Some(Cow::Owned(method.to_owned())),
                    _ => named.map(Cow::Borrowed),
                })
            };
            check_mirrored(header, |_: &str| Vec::new(), STATELESS, &request.method, &request.params)
        };
        assert_eq!(check(Some(name)), Ok(()), "{method}");
        for wrong in [None, Some("other")] {
            assert!(matches!(check(wrong), Err(PostRefusal::Header(..))), "{method}");
        }
    }
}

#[test]
fn refusals_are_findings_of_their_rules() {
    let refused = |headers: PostHeaders<'_>, body: &str| {
        let incoming = decode(body.as_bytes(), &Limits::default()).unwrap();
        let refusal = route_post(&config(), &PeerCache::default(), headers, true, &incoming).unwrap_err();
        let stateless = names_stateless(headers.version.ok().flatten());
        refusal.finding(stateless).map(|finding| finding.rule.id)
    };
    let ping = request("ping", "{}");
    let html = |version| PostHeaders { accept: Accept::Refused, ..headers(version) };
    assert_eq!(refused(html(Some(SESSION)), &ping), Some("HTTP-03"));
    assert_eq!(refused(html(Some(STATELESS)), &ping), Some("MHTTP-02"));
    assert_eq!(refused(headers(Some(STATELESS)), &ping), Some("STATE-04"));
    let outside = |version| PostHeaders { session: false, ..headers(version) };
    let null_meta = request("tools/list", r#"{"_meta":null}"#);
    assert_eq!(refused(outside(None), &request("ping", r#"{"_meta":[]}"#)), Some("STATE-04"));
    assert_eq!(refused(headers(Some(STATELESS)), &null_meta), Some("STATE-04"));
    assert_eq!(refused(headers(Some(SESSION)), &null_meta), Some("RPC-01"), "it belongs to a session");
    assert_eq!(refused(outside(None), &request("initialize", r#"{"_meta":null}"#)), Some("RPC-01"));
    let response = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    assert_eq!(refused(outside(Some(STATELESS)), response), Some("RPC-15"));
    assert_eq!(refused(headers(None), &request("initialize", "{}")), Some("LIFE-01"));
    assert_eq!(refused(PostHeaders { version: Err("twice"), ..outside(None) }, &ping), Some("LIFE-09"));
    assert_eq!(refused(headers(Some("1999-01-01")), &ping), None, "to name another revision is no mistake");
}
