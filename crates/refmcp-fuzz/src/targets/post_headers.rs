//! The routing of a POST: headers never decide the lifecycle against the message, and headers that mirror the body are
//! accepted if and only if they say the same.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use refmcp_proto::engine::EngineConfig;
use refmcp_proto::engine::server::PeerCache;
use refmcp_proto::http::{
    Accept, PostHeaders, PostRefusal, PostRoute, check_mirrored, check_session_version, malformed_post,
    names_stateless, route_post,
};
use refmcp_proto::jsonrpc::{Incoming, Limits, Message, decode};
use refmcp_proto::model::keys;
use refmcp_proto::param_headers::{ParamHeader, param_headers};
use refmcp_proto::revision::{Lifecycle, Revision};
use refmcp_testkit::engine::full_config;
use serde_json::Value;

use crate::input::Input;

static CONFIG: LazyLock<EngineConfig> = LazyLock::new(full_config);

/// A version header, the other headers, and the body as the rest; an empty line stands for an absent header.
pub fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let flags = input.byte();
    let accept = input.pick(&[Accept::Allowed, Accept::Absent, Accept::Refused]);
    let (version, method, name, param) = (input.text(), input.text(), input.text(), input.text());
    let body = input.rest();
    let named = Some(version.as_str()).filter(|version| !version.is_empty());
    let headers = PostHeaders {
        version: if flags & 1 == 1 { Err("an unreadable version") } else { Ok(named) },
        session: flags & 2 == 2,
        accept,
    };
    let require_accept = flags & 4 == 4;
    let stateless = names_stateless(named);
    for revision in Revision::ALL {
        let checked = check_session_version(named, revision.rules(), flags & 8 == 8);
        assert!(checked.is_err() || named.is_none_or(|named| named == revision.as_str()));
    }
    let incoming = match decode(body, &Limits::default()) {
        Ok(incoming) => incoming,
        Err(error) => return drop(malformed_post(accept, require_accept, &error).finding(stateless)),
    };
    let peers = PeerCache::default();
    match route_post(&CONFIG, &peers, headers, require_accept, &incoming) {
        Err(refusal) => drop(refusal.finding(stateless)),
        Ok(route) => check_route(&incoming, headers, &route),
    }
    let Incoming::One(Message::Request(request)) = &incoming else { return };
    let given = BTreeMap::from([
        ("mcp-protocol-version", version.as_str()),
        ("mcp-method", method.as_str()),
        ("mcp-name", name.as_str()),
        ("mcp-param-a", param.as_str()),
    ]);
    let header =
        |name: &str| Ok(given.get(name).filter(|value| !value.is_empty()).map(|value| Cow::Borrowed(*value)));
    let mirrored = |_: &str| vec![ParamHeader { name: "A".to_owned(), path: vec!["a".to_owned()] }];
    match check_mirrored(header, mirrored, &version, &request.method, &request.params) {
        Ok(()) => assert_eq!(method, request.method, "a header that differs was accepted"),
        Err(PostRefusal::Header(finding, error)) => {
            for secret in [&name, &param].into_iter().filter(|secret| secret.len() > 24) {
                assert!(!error.message.contains(secret.as_str()), "{} repeats a value", finding.what);
            }
        }
        Err(other) => panic!("{other:?}"),
    }
    if let Some(Ok(Value::Object(schema))) = request.params.arguments.map(serde_json::from_str) {
        check_marks(&schema);
    }
}

fn check_route(incoming: &Incoming<'_>, headers: PostHeaders<'_>, route: &PostRoute<'_>) {
    match (incoming, route) {
        (Incoming::Batch(_), PostRoute::Batch { .. }) => {}
        (Incoming::One(Message::Request(request)), PostRoute::Stateless(version)) => {
            let stated = request.params.meta.protocol_version.map(serde_json::from_str::<String>);
            let stated = stated.and_then(Result::ok);
            assert_eq!(stated.as_deref(), Some(&**version), "{} of the body decides", keys::PROTOCOL_VERSION);
        }
        (Incoming::One(Message::Request(request)), PostRoute::Open) => {
            assert!(request.method == "initialize" && !headers.session);
        }
        (Incoming::One(Message::Request(request)), PostRoute::Request(_)) => {
            assert!(request.params.meta.protocol_version.is_none(), "a stateless request in a session");
            let named = headers.version.ok().flatten().and_then(|named| named.parse::<Revision>().ok());
            assert!(named.is_none_or(|revision| revision.lifecycle() == Lifecycle::Handshake));
        }
        (
            Incoming::One(Message::Notification(_) | Message::Response(_)),
            PostRoute::Message | PostRoute::Ignored,
        ) => {}
        (incoming, route) => panic!("{incoming:?} became {route:?}"),
    }
}

/// The marks of a schema are found or refused; those that are found have different names.
fn check_marks(schema: &serde_json::Map<String, Value>) {
    let Ok(marks) = param_headers(schema) else { return };
    for (at, mark) in marks.iter().enumerate() {
        assert!(!mark.path.is_empty() && !mark.name.is_empty());
        assert!(!marks[..at].iter().any(|other| other.name.eq_ignore_ascii_case(&mark.name)));
    }
}
