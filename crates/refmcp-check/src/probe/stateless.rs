//! Probes of the lifecycle without sessions: discovery, `_meta`, lists over several connections.

use refmcp_proto::model::keys;
use refmcp_proto::rule;
use serde_json::{Value, json};

use super::lifecycle::NO_VERSION;
use super::{Context, Probe, Stop};
use crate::connection::{Answer, Wants};
use crate::offer::list;
use crate::session::{Session, request_meta};

pub(super) static PROBES: &[Probe] = &[
    Probe::gentle("discover", &[&rule::STATE_09], |cx| Box::pin(discover(cx))),
    Probe::harsh("missing-capabilities", &[&rule::STATE_05], |cx| Box::pin(missing_capabilities(cx))),
    Probe::harsh("unsupported-version", &[&rule::STATE_07], |cx| Box::pin(unsupported_version(cx))),
    Probe::harsh("earlier-capabilities", &[&rule::STATE_01], |cx| Box::pin(earlier_capabilities(cx))),
    Probe::gentle("undeclared-capability", &[&rule::STATE_16], |cx| Box::pin(undeclared_capability(cx))),
    Probe::harsh("unknown-log-level", &[&rule::LOG_04], |cx| Box::pin(unknown_log_level(cx))),
    Probe::gentle("same-lists", &[&rule::STATE_12, &rule::TOOL_03], |cx| Box::pin(same_lists(cx))),
];

/// `server/discover` names versions and capabilities.
async fn discover(cx: &mut Context) -> Result<(), Stop> {
    let version = json!(cx.revision.as_str());
    let session = cx.session().await?;
    let (id, answer) = session.request("server/discover", json!({})).await;
    let result = answer.result(&id);
    let versions = result.and_then(|result| result.get("supportedVersions")).and_then(Value::as_array);
    let capabilities = result.and_then(|result| result.get("capabilities"));
    let kept = versions.is_some_and(|versions| versions.contains(&version))
        && capabilities.is_some_and(Value::is_object);
    let what = || {
        format!("server/discover is answered with {}, without versions or capabilities", answer.summary(&id))
    };
    cx.check(&rule::STATE_09, &answer, kept, what, "answer with supportedVersions and capabilities");
    Ok(())
}

/// Sends a `server/discover` with this `_meta`.
async fn with_meta(session: &mut Session, version: &str, meta: Value) -> (Value, Answer) {
    let id = session.next_id();
    let params = json!({ "_meta": meta });
    let text =
        json!({ "jsonrpc": "2.0", "id": id, "method": "server/discover", "params": params }).to_string();
    let wants = Wants::Response(id.clone());
    let request = session.post(&text).with("mcp-protocol-version", version);
    let answer = match session.connection {
        crate::connection::Connection::Http(_) => session.send(&request, &wants).await,
        crate::connection::Connection::Pipe(_) => session.exchange(&text, &wants).await,
    };
    (id, answer)
}

/// A request without the capabilities of the client is refused.
async fn missing_capabilities(cx: &mut Context) -> Result<(), Stop> {
    let version = cx.revision.as_str();
    let session = cx.session().await?;
    let mut meta = request_meta(version);
    meta.remove(keys::CLIENT_CAPABILITIES);
    let (id, answer) = with_meta(session, version, meta.into()).await;
    let kept = answer.error_code(&id) == Some(-32602) && answer.status.is_none_or(|status| status == 400);
    let what =
        || format!("a request without clientCapabilities in _meta is answered with {}", answer.summary(&id));
    cx.check(
        &rule::STATE_05,
        &answer,
        kept,
        what,
        "refuse it with the error -32602, over HTTP with status 400",
    );
    Ok(())
}

/// A request is served by what it says itself, and not by what an earlier one on the same connection said.
async fn earlier_capabilities(cx: &mut Context) -> Result<(), Stop> {
    let version = cx.revision.as_str();
    let mut session = cx.unopened(cx.revision).await?;
    let mut bare = request_meta(version);
    bare.remove(keys::CLIENT_CAPABILITIES);
    let (first_id, first) = with_meta(&mut session, version, bare.clone().into()).await;
    let (full_id, full) = with_meta(&mut session, version, request_meta(version).into()).await;
    let (id, mut answer) = with_meta(&mut session, version, bare.into()).await;
    session.close().await;
    answer.exchange.repeat = cx.repeat();
    if first.result(&first_id).is_some() {
        let why = "requests without capabilities are served even where no earlier one has any";
        return Err(Stop::NotVerified(why.to_owned()));
    }
    if full.result(&full_id).is_none() || answer.late {
        let why = format!("server/discover is answered with {}", full.summary(&full_id));
        return Err(Stop::NotVerified(why));
    }
    let inferred = answer.result(&id).is_some();
    let what = || {
        "a request without clientCapabilities is served once another on its connection had them".to_owned()
    };
    let expected = "take what a client can do from each request alone";
    cx.check(&rule::STATE_01, &answer, !inferred, what, expected);
    Ok(())
}

/// A version that the server does not have is refused, with those that it has.
async fn unsupported_version(cx: &mut Context) -> Result<(), Stop> {
    let session = cx.session().await?;
    let (id, answer) = with_meta(session, NO_VERSION, request_meta(NO_VERSION).into()).await;
    let data = answer.error(&id).and_then(|error| error.get("data"));
    let supported = data.and_then(|data| data.get("supported")).and_then(Value::as_array);
    let kept = answer.error_code(&id) == Some(-32022)
        && supported.is_some_and(|supported| !supported.is_empty())
        && answer.status.is_none_or(|status| status == 400);
    let what = || match supported {
        None if answer.error_code(&id) == Some(-32022) => {
            "the error -32022 does not name the supported versions in data.supported".to_owned()
        }
        _ => format!("a request of an unknown version is answered with {}", answer.summary(&id)),
    };
    let expected = "refuse it with the error -32022 and data.supported, over HTTP with status 400";
    cx.check(&rule::STATE_07, &answer, kept, what, expected);
    Ok(())
}

/// A method whose capability is not declared is unknown.
async fn undeclared_capability(cx: &mut Context) -> Result<(), Stop> {
    let gated = [
        ("tools", "tools/list", json!({})),
        ("resources", "resources/list", json!({})),
        ("prompts", "prompts/list", json!({})),
        (
            "completions",
            "completion/complete",
            json!({
                "ref": { "type": "ref/prompt", "name": "x" }, "argument": { "name": "x", "value": "" },
            }),
        ),
    ];
    let declared = cx.offer.capabilities.clone();
    let mut missing = gated.into_iter().filter(|(capability, ..)| declared.get(*capability).is_none());
    let Some((capability, method, params)) = missing.next() else {
        return Err(Stop::Skipped("the server declares every capability".to_owned()));
    };
    let session = cx.session().await?;
    let (id, answer) = session.request(method, params).await;
    let kept = answer.error_code(&id) == Some(-32601);
    let what =
        || format!("{method} without the capability {capability} is answered with {}", answer.summary(&id));
    cx.check(
        &rule::STATE_16,
        &answer,
        kept,
        what,
        "refuse it with the error -32601, or declare the capability",
    );
    Ok(())
}

/// An unknown log level is refused.
async fn unknown_log_level(cx: &mut Context) -> Result<(), Stop> {
    if cx.offer.capabilities.get("logging").is_none() {
        return Err(Stop::Skipped("the server sends no log messages".to_owned()));
    }
    let version = cx.revision.as_str();
    let session = cx.session().await?;
    let mut meta = request_meta(version);
    meta.insert(keys::LOG_LEVEL.to_owned(), json!("loud"));
    let (id, answer) = with_meta(session, version, meta.into()).await;
    let kept = answer.error_code(&id) == Some(-32602);
    let what = || format!("a request with an unknown logLevel is answered with {}", answer.summary(&id));
    cx.check(&rule::LOG_04, &answer, kept, what, "refuse it with the error -32602");
    Ok(())
}

/// Lists are the same over every connection, and in the same order.
async fn same_lists(cx: &mut Context) -> Result<(), Stop> {
    let lists = [("tools", "tools/list"), ("resources", "resources/list"), ("prompts", "prompts/list")];
    let declared = cx.offer.capabilities.clone();
    let lists = lists.into_iter().filter(|(member, _)| declared.get(*member).is_some());
    let mut other = cx.open().await?;
    let compared = compare_lists(cx, &mut other, lists).await;
    cx.shared.clone().close(other).await;
    compared
}

async fn compare_lists(
    cx: &mut Context,
    other: &mut Session,
    lists: impl Iterator<Item = (&'static str, &'static str)>,
) -> Result<(), Stop> {
    for (member, method) in lists {
        let session = cx.session().await?;
        let (here, there) = (list(session, method, member).await, list(other, method, member).await);
        let missing = here.missing.as_deref().or(there.missing.as_deref());
        if let Some(why) = missing {
            cx.not_verified(&rule::STATE_12, why);
            if member == "tools" {
                cx.not_verified(&rule::TOOL_03, why);
            }
            continue;
        }
        let (here, there) = (identifiers(&here.items), identifiers(&there.items));
        let (_, mut answer) = other.request(method, json!({})).await;
        let text = |names: &[Value]| Value::Array(names.to_vec()).to_string();
        answer.exchange.repeat = cx.repeat();
        answer.exchange.answer = format!("one connection: {}\nanother: {}", text(&here), text(&there));
        let sorted = |names: &[Value]| {
            let mut names: Vec<String> = names.iter().map(Value::to_string).collect();
            names.sort_unstable();
            names
        };
        let same = sorted(&here) == sorted(&there);
        let what = || format!("{method} has other items over another connection");
        cx.check(&rule::STATE_12, &answer, same, what, "offer the same list over every connection");
        if member == "tools" && same {
            let what = || "tools/list has its tools in another order each time".to_owned();
            cx.check(&rule::TOOL_03, &answer, here == there, what, "list tools in a fixed order");
        }
    }
    Ok(())
}

fn identifiers(items: &[Value]) -> Vec<Value> {
    items.iter().filter_map(|item| item.get("uri").or_else(|| item.get("name"))).cloned().collect()
}
