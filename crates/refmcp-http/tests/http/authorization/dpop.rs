//! DPoP: tokens that are bound to a key need a proof for every request.

use refmcp_auth::dpop;
use refmcp_auth::jose::PrivateKey;
use refmcp_auth::resource::DpopNonces;
use refmcp_http::ResourceServerOptions;
use refmcp_proto::frame::SseItem;
use serde_json::{Value, json};
use url::Url;

use super::fake_issuers::now;
use super::{Guarded, challenge};
use crate::support::http1::Reply;
use crate::support::{LATEST_SESSION, initialize_params, request};

/// A client with a key and a token that is bound to it.
struct KeyHolder<'a> {
    guarded: &'a Guarded,
    key: PrivateKey,
    token: String,
}

impl<'a> KeyHolder<'a> {
    fn new(guarded: &'a Guarded) -> Self {
        let key = PrivateKey::generate().unwrap();
        let jkt = key.public().thumbprint().unwrap();
        Self { guarded, key, token: guarded.token(json!({ "cnf": { "jkt": jkt } })) }
    }

    fn proof(&self, method: &str, path: &str, nonce: Option<&str>) -> String {
        let url = Url::parse(&format!("http://{}{path}", self.guarded.site.address)).unwrap();
        dpop::prove(&self.key, method, &url, Some(&self.token), nonce, now()).unwrap()
    }

    async fn ask(&self, scheme: &str, proofs: &[&str]) -> Reply {
        let authorization = format!("{scheme} {}", self.token);
        let mut headers = vec![("Authorization", &*authorization)];
        headers.extend(proofs.iter().map(|proof| ("DPoP", *proof)));
        self.guarded.ask(&headers).await
    }
}

fn is_refused(reply: &Reply, error: &str, what: &str) {
    assert_eq!(reply.status, 401, "{what}");
    assert_eq!(challenge(reply).get("error"), Some(error), "{what}");
}

#[tokio::test]
async fn a_bound_token_needs_a_proof_for_every_request() {
    let guarded = Guarded::open().await;
    let holder = KeyHolder::new(&guarded);
    let proof = holder.proof("POST", "/mcp", None);
    assert_eq!(holder.ask("DPoP", &[&proof]).await.status, 200);
    is_refused(&holder.ask("DPoP", &[&proof]).await, "invalid_dpop_proof", "used again");
    assert_eq!(holder.ask("dpop", &[&holder.proof("POST", "/mcp", None)]).await.status, 200);
    is_refused(&holder.ask("DPoP", &[]).await, "invalid_dpop_proof", "without");
    let (one, two) = (holder.proof("POST", "/mcp", None), holder.proof("POST", "/mcp", None));
    is_refused(&holder.ask("DPoP", &[&one, &two]).await, "invalid_dpop_proof", "two");
    is_refused(
        &holder.ask("DPoP", &[&holder.proof("GET", "/mcp", None)]).await,
        "invalid_dpop_proof",
        "method",
    );
    is_refused(
        &holder.ask("DPoP", &[&holder.proof("POST", "/sse", None)]).await,
        "invalid_dpop_proof",
        "URL",
    );
    let thief = PrivateKey::generate().unwrap();
    let url = Url::parse(&guarded.resource()).unwrap();
    let stolen = dpop::prove(&thief, "POST", &url, Some(&holder.token), None, now()).unwrap();
    is_refused(&holder.ask("DPoP", &[&stolen]).await, "invalid_dpop_proof", "of another key");
    let other = dpop::prove(&holder.key, "POST", &url, Some("another"), None, now()).unwrap();
    is_refused(&holder.ask("DPoP", &[&other]).await, "invalid_dpop_proof", "of another token");
    let early = dpop::prove(&holder.key, "POST", &url, Some(&holder.token), None, now() + 40).unwrap();
    is_refused(&holder.ask("DPoP", &[&early]).await, "invalid_dpop_proof", "of the future");
    let old = dpop::prove(&holder.key, "POST", &url, Some(&holder.token), None, now() - 310).unwrap();
    is_refused(&holder.ask("DPoP", &[&old]).await, "invalid_dpop_proof", "old");
    is_refused(&holder.ask("DPoP", &["nonsense"]).await, "invalid_dpop_proof", "nonsense");
}

#[tokio::test]
async fn bearer_and_dpop_tokens_are_not_interchangeable() {
    let guarded = Guarded::open().await;
    let holder = KeyHolder::new(&guarded);
    let proof = holder.proof("POST", "/mcp", None);
    let unproven = holder.ask("Bearer", &[&proof]).await;
    is_refused(&unproven, "invalid_token", "bound, as if it were not");
    assert!(challenge(&unproven).is("DPoP"), "what would help is named first");
    let free = KeyHolder { token: guarded.token(json!({})), ..KeyHolder::new(&guarded) };
    is_refused(&free.ask("DPoP", &[&free.proof("POST", "/mcp", None)]).await, "invalid_token", "not bound");
    assert_eq!(free.ask("Bearer", &[]).await.status, 200);
}

#[tokio::test]
async fn every_request_of_a_session_needs_a_new_proof() {
    let guarded = Guarded::open().await;
    let holder = KeyHolder::new(&guarded);
    let authorization = format!("DPoP {}", holder.token);
    let send = async |method: &str, session: Option<&str>, proof: &str, body: Value| {
        let mut headers = vec![("Authorization", &*authorization), ("DPoP", proof)];
        if let Some(session) = session {
            headers.extend([("Mcp-Session-Id", session), ("MCP-Protocol-Version", LATEST_SESSION)]);
        }
        guarded.site.send(method, "/mcp", &headers, body.to_string().as_bytes()).await
    };
    let proof = holder.proof("POST", "/mcp", None);
    let opened = send("POST", None, &proof, request("initialize", initialize_params(LATEST_SESSION))).await;
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    let ping = request("ping", json!({}));
    assert_eq!(send("POST", Some(&session), &proof, ping.clone()).await.status, 401, "the same again");
    let fresh = holder.proof("POST", "/mcp", None);
    assert_eq!(send("POST", Some(&session), &fresh, ping).await.status, 200);
    let ending = holder.proof("DELETE", "/mcp", None);
    assert_eq!(send("DELETE", Some(&session), &ending, Value::Null).await.status, 204);
}

#[tokio::test]
async fn a_proof_names_the_url_that_is_posted_to() {
    let guarded = Guarded::open().await;
    let holder = KeyHolder::new(&guarded);
    let authorization = format!("DPoP {}", holder.token);
    let send = async |method: &str, target: &str, proof: &str, body: &[u8]| {
        let headers = [("Authorization", &*authorization), ("DPoP", proof)];
        guarded.site.send(method, target, &headers, body).await
    };
    let mut stream = send("GET", "/sse", &holder.proof("GET", "/sse", None), b"").await;
    assert_eq!(stream.status, 200);
    let Some(SseItem::Event(event)) = stream.item().await else { panic!("no event") };
    let target = event.data;
    assert!(target.starts_with("/messages?"), "{target}");
    let ping = request("ping", json!({})).to_string();
    let post =
        async |path: &str| send("POST", &target, &holder.proof("POST", path, None), ping.as_bytes()).await;
    for elsewhere in ["/mcp", "/sse", "/mcp/ws", "/messages/"] {
        is_refused(&post(elsewhere).await, "invalid_dpop_proof", elsewhere);
    }
    assert_eq!(post("/messages").await.status, 202);
    assert_eq!(post(&target).await.status, 202, "as it was called, with what follows the path");
    // And the other way round.
    let proof = holder.proof("POST", "/messages", None);
    is_refused(&holder.ask("DPoP", &[&proof]).await, "invalid_dpop_proof", "of a message");
}

#[tokio::test]
async fn a_nonce_is_offered_and_then_required() {
    let guarded = Guarded::with(ResourceServerOptions {
        require_dpop: true,
        dpop_nonces: Some(DpopNonces::new().unwrap()),
        ..ResourceServerOptions::default()
    })
    .await;
    let holder = KeyHolder::new(&guarded);
    let reply = holder.ask("DPoP", &[&holder.proof("POST", "/mcp", None)]).await;
    is_refused(&reply, "use_dpop_nonce", "without");
    assert!(challenge(&reply).is("DPoP"));
    let nonce = reply.header("dpop-nonce").unwrap().to_owned();
    assert_eq!(holder.ask("DPoP", &[&holder.proof("POST", "/mcp", Some(&nonce))]).await.status, 200);
    is_refused(
        &holder.ask("DPoP", &[&holder.proof("POST", "/mcp", Some("made-up"))]).await,
        "use_dpop_nonce",
        "",
    );
    // Challenges offer DPoP alone where it is required.
    let free = guarded.ask(&[("Authorization", &guarded.bearer(json!({})))]).await;
    is_refused(&free, "invalid_token", "not bound");
    let nothing = guarded.ask(&[]).await;
    assert!(challenge(&nothing).is("DPoP") && challenge(&nothing).get("algs").unwrap().contains("ES256"));
}
