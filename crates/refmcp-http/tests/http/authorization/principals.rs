//! Sessions belong to their principal, and not to another client of the same user, another user, or a user of the same name
//! at another issuer. The table goes through the routes, so that a new route needs a row.

use refmcp_http::Endpoint;
use serde_json::{Value, json};

use super::fake_issuers::OTHER_ISSUER;
use super::{Guarded, UPGRADE, in_session};
use crate::support::http1::Reply;
use crate::support::{BOTH_KINDS, LATEST_SESSION, request, text_of};
use refmcp_proto::frame::SseItem;

/// A request for a session.
struct Action {
    what: &'static str,
    method: &'static str,
    path: String,
    headers: Vec<(&'static str, String)>,
    body: Value,
    /// The status for the session's principal.
    fine: u16,
    /// The status for others, if it is not 404.
    others: u16,
}

/// What belongs to the principal: a session, an event of its stream, an HTTP+SSE session.
struct Owned {
    session: String,
    event: String,
    messages: String,
    _stream: Reply,
}

/// The requests of a route.
fn actions(path: &str, owned: &Owned) -> Vec<Action> {
    let named = || {
        vec![("Mcp-Session-Id", owned.session.clone()), ("MCP-Protocol-Version", LATEST_SESSION.to_owned())]
    };
    let mut resumed = named();
    resumed.push(("Last-Event-ID", owned.event.clone()));
    let upgrade = || UPGRADE.map(|(name, value)| (name, value.to_owned())).to_vec();
    let action = |what, method, headers, body, fine| Action {
        what,
        method,
        path: path.to_owned(),
        headers,
        body,
        fine,
        others: 404,
    };
    let answer = json!({ "jsonrpc": "2.0", "id": 77, "result": {} });
    let cancel =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
    let ping = request("ping", json!({}));
    match path {
        "/mcp" => vec![
            action("request", "POST", named(), ping, 200),
            action("answer", "POST", named(), answer, 202),
            action("cancel", "POST", named(), cancel, 202),
            action("batch", "POST", named(), json!([request("ping", json!({}))]), 400),
            action("listen", "GET", named(), Value::Null, 200),
            action("resume", "GET", resumed, Value::Null, 200),
            Action { others: 101, ..action("socket", "GET", upgrade(), Value::Null, 101) },
            action("delete", "DELETE", named(), Value::Null, 204),
        ],
        // Both open a new session, for any principal.
        "/mcp/ws" => vec![Action { others: 101, ..action("socket", "GET", upgrade(), Value::Null, 101) }],
        "/sse" => vec![Action { others: 200, ..action("listen", "GET", Vec::new(), Value::Null, 200) }],
        "/messages" => {
            let mut said = action("message", "POST", Vec::new(), request("ping", json!({})), 202);
            said.path = owned.messages.clone();
            vec![said]
        }
        "/healthz" | "/readyz" | "/metrics" | "/.well-known/oauth-protected-resource" => Vec::new(),
        other => panic!("{other} is new; say what others may do there"),
    }
}

async fn own(guarded: &Guarded, bearer: &str) -> Owned {
    let session = guarded.session(bearer).await;
    let params =
        json!({ "name": "steps", "arguments": { "n": 2, "ms": 1 }, "_meta": { "progressToken": 1 } });
    let watched = guarded.site.post(&in_session(bearer, &session), &request("tools/call", params)).await;
    let event = watched.events().await.remove(0).0.unwrap();
    let mut stream = guarded.site.send("GET", "/sse", &[("Authorization", bearer)], b"").await;
    let Some(SseItem::Event(told)) = stream.item().await else { panic!("no event") };
    Owned { session, event, messages: told.data.to_string(), _stream: stream }
}

async fn done(guarded: &Guarded, action: &Action, bearer: Option<&str>) -> u16 {
    let mut headers: Vec<(&str, &str)> =
        action.headers.iter().map(|(name, value)| (*name, &**value)).collect();
    headers.extend(bearer.map(|bearer| ("Authorization", bearer)));
    headers.push(("Accept", BOTH_KINDS));
    let body = if action.body.is_null() { String::new() } else { action.body.to_string() };
    guarded.site.send(action.method, &action.path, &headers, body.as_bytes()).await.status
}

#[tokio::test]
async fn a_session_belongs_to_its_principal() {
    let guarded = Guarded::open().await;
    let mine = guarded.bearer(json!({}));
    let again = guarded.bearer(json!({ "jti": "another token of mine", "scope": "more" }));
    let others = [
        ("other client", guarded.bearer(json!({ "client_id": "another" }))),
        ("no client", guarded.bearer(json!({ "client_id": null }))),
        ("other subject", guarded.bearer(json!({ "sub": "you" }))),
        ("other issuer", guarded.bearer(json!({ "iss": OTHER_ISSUER }))),
    ];
    let owned = own(&guarded, &mine).await;
    for route in Endpoint::routes() {
        for action in actions(route.path, &owned) {
            for (who, bearer) in &others {
                let status = done(&guarded, &action, Some(bearer)).await;
                assert_eq!(status, action.others, "{who}: {} at {}", action.what, route.path);
            }
            let anonymous = done(&guarded, &action, None).await;
            assert_eq!(anonymous, 401, "without a token: {} at {}", action.what, route.path);
            // A newer token of the same principal is accepted.
            let owner = done(&guarded, &action, Some(&again)).await;
            assert_eq!(owner, action.fine, "owner: {} at {}", action.what, route.path);
        }
    }
}

#[tokio::test]
async fn a_session_of_another_principal_is_unknown() {
    let guarded = Guarded::open().await;
    let (mine, yours) = (guarded.bearer(json!({})), guarded.bearer(json!({ "sub": "you" })));
    let session = guarded.session(&mine).await;
    for (method, body) in
        [("POST", request("ping", json!({})).to_string()), ("GET", String::new()), ("DELETE", String::new())]
    {
        let mut heard = Vec::new();
        for id in [session.as_str(), "there-never-was-such-a-session"] {
            let reply = guarded.site.send(method, "/mcp", &in_session(&yours, id), body.as_bytes()).await;
            let (status, names) = (reply.status, reply.names().map(str::to_owned).collect::<Vec<_>>());
            heard.push((status, names, reply.text().await));
        }
        assert_eq!(heard[0], heard[1], "{method}");
    }
}

#[tokio::test]
async fn tools_know_the_principal() {
    let guarded = Guarded::open().await;
    let call = || json!({ "name": "whoami", "arguments": {} });
    let mine = guarded.bearer(json!({}));
    let session = guarded.session(&mine).await;
    let in_session = guarded.site.post(&in_session(&mine, &session), &request("tools/call", call())).await;
    let alone = guarded.site.stateless("tools/call", call(), &[("Authorization", &mine)]).await;
    let (in_session, alone) = (in_session.json().await, alone.json().await);
    assert_eq!(text_of(&in_session), r#"["https://issuer.example","me","client"]"#);
    assert_eq!(text_of(&alone), text_of(&in_session));
}

#[tokio::test]
async fn a_token_counts_in_every_request_of_a_session() {
    let guarded = Guarded::open().await;
    let mine = guarded.bearer(json!({}));
    let session = guarded.session(&mine).await;
    let ping = request("ping", json!({}));
    for bad in ["", "Bearer nonsense", &guarded.bearer(json!({ "exp": 1 }))] {
        let status = guarded.site.post(&in_session(bad, &session), &ping).await.status;
        assert!([400, 401].contains(&status), "{status}");
    }
    let without = [("Mcp-Session-Id", &*session), ("MCP-Protocol-Version", LATEST_SESSION)];
    assert_eq!(guarded.site.post(&without, &ping).await.status, 401);
    assert_eq!(guarded.site.post(&in_session(&mine, &session), &ping).await.status, 200);
}
