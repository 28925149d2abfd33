//! Probes of authorization: where a server that wants a token says that one is to be had.

use refmcp_proto::rule;
use serde_json::{Value, json};
use url::Url;

use super::{Context, Probe, ProbeTransport, Stop};
use crate::connection::{Http, HttpRequest, Wants};
use crate::target::{HttpTarget, TargetTransport};

pub(super) static PROBES: &[Probe] =
    &[Probe::harsh("resource-metadata", &[&rule::AUTH_03], |cx| Box::pin(resource_metadata(cx)))
        .over(ProbeTransport::Http)
        .without_access()];

const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// The metadata of the resource names an authorization server.
async fn resource_metadata(cx: &mut Context) -> Result<(), Stop> {
    let TargetTransport::Http(target) = &cx.shared.target.transport else { return Ok(()) };
    let stranger = without_token(target.clone());
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string();
    let request = HttpRequest::of_message(&ping, None, Some(cx.revision));
    let refused = Http::beside(&stranger).send(&request, &Wants::Body, cx.within()).await;
    if refused.status != Some(401) {
        return Err(Stop::Skipped("a request without a token is not refused with 401".to_owned()));
    }
    for url in places(&stranger.url, refused.header("www-authenticate").unwrap_or_default()) {
        // Nothing is sent to others than the server.
        if url.origin() != stranger.url.origin() {
            return Err(Stop::NotVerified(format!("the metadata is at another server: {}", url.authority())));
        }
        let place = HttpTarget { url, ..stranger.clone() };
        let request = HttpRequest::new("GET", &[("accept", "application/json")], "");
        let mut answer = Http::beside(&place).send(&request, &Wants::Body, cx.within()).await;
        let Some(metadata) = answer.messages.first().filter(|it| it.is_object()).cloned() else { continue };
        answer.exchange.repeat = cx.repeat();
        let servers = metadata.get("authorization_servers").and_then(Value::as_array);
        let is_named = servers.is_some_and(|all| !all.is_empty() && all.iter().all(Value::is_string));
        let what = || "the metadata of the resource names no authorization server".to_owned();
        let expected = "name at least one issuer in authorization_servers";
        cx.check(&rule::AUTH_03, &answer, is_named, what, expected);
        return Ok(());
    }
    Err(Stop::NotVerified("there is no metadata of the resource".to_owned()))
}

/// The same server for a client that has no token.
fn without_token(mut target: HttpTarget) -> HttpTarget {
    target.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("authorization"));
    target
}

/// Where the metadata may be: where the challenge says, or else at the well-known URLs.
fn places(server: &Url, challenge: &str) -> Vec<Url> {
    let named = challenge.split([',', ' ']).find_map(|part| part.trim().strip_prefix("resource_metadata="));
    if let Some(named) = named.and_then(|named| server.join(named.trim_matches('"')).ok()) {
        return vec![named];
    }
    let of_path = format!("{WELL_KNOWN}{}", server.path().trim_end_matches('/'));
    [&*of_path, WELL_KNOWN].into_iter().filter_map(|path| server.join(path).ok()).collect()
}
