//! Probes of cancellation, subscriptions and log levels.

use refmcp_proto::model::keys;
use refmcp_proto::rule;
use serde_json::{Value, json};

use super::{Context, Probe, ProbeTransport, Stop};
use crate::connection::{Connection, Wants};
use crate::session::notification;

pub(super) static PROBES: &[Probe] = &[
    Probe::gentle("cancel-nothing", &[&rule::CANC_02], |cx| Box::pin(cancel_nothing(cx)))
        .over(ProbeTransport::Pipe),
    Probe::harsh("listen", &[&rule::SUB_03, &rule::SUB_04], |cx| Box::pin(listen(cx))),
    Probe::gentle("set-log-level", &[&rule::LOG_02], |cx| Box::pin(set_log_level(cx))),
];

/// Cancelling a request that does not exist has no effect.
async fn cancel_nothing(cx: &mut Context) -> Result<(), Stop> {
    let session = cx.session().await?;
    let unknown = json!(999_999_999);
    let params = json!({ "requestId": unknown, "reason": "there is no such request" });
    session.notify(&notification("notifications/cancelled", Some(params)).to_string()).await;
    let (id, mut answer) = session.sentinel().await;
    answer.exchange.repeat = cx.repeat();
    let stray = answer.nameless().is_some() || answer.response(&unknown).is_some();
    let kept = answer.result(&id).is_some() && !stray;
    let what = || match stray {
        true => "notifications/cancelled for an unknown request is answered".to_owned(),
        false => format!("after it a request is answered with {}", answer.summary(&id)),
    };
    cx.check(&rule::CANC_02, &answer, kept, what, "ignore the cancellation of requests that are not known");
    Ok(())
}

/// A subscription is acknowledged first, under the id of its request.
async fn listen(cx: &mut Context) -> Result<(), Stop> {
    let kinds = [
        ("tools", "toolsListChanged"),
        ("prompts", "promptsListChanged"),
        ("resources", "resourcesListChanged"),
    ];
    let declared = cx.offer.capabilities.clone();
    let announces =
        |capability: &str| declared.pointer(&format!("/{capability}/listChanged")) == Some(&json!(true));
    let Some((_, kind)) = kinds.into_iter().find(|(capability, _)| announces(capability)) else {
        return Err(Stop::Skipped("the server announces no changes".to_owned()));
    };
    let session = cx.session().await?;
    let (id, message) = session.message("subscriptions/listen", json!({ "notifications": { kind: true } }));
    let answer = session.exchange(&message.to_string(), &Wants::Message).await;
    if matches!(session.connection, Connection::Pipe(_)) {
        let params = json!({ "requestId": id, "reason": "it was heard" });
        session.notify(&notification("notifications/cancelled", Some(params)).to_string()).await;
    }
    let first = answer.messages.first();
    let method = first.and_then(|message| message.get("method")).and_then(Value::as_str);
    let acknowledged = method == Some("notifications/subscriptions/acknowledged");
    let what = || match method {
        Some(_) => "the first message of a subscription is another notification".to_owned(),
        None => format!("subscriptions/listen is answered with {}", answer.summary(&id)),
    };
    let expected = "begin with notifications/subscriptions/acknowledged";
    cx.check(&rule::SUB_03, &answer, acknowledged, what, expected);
    if acknowledged {
        let named = first.and_then(|message| message.get("params")?.get("_meta")?.get(keys::SUBSCRIPTION_ID));
        let what = || "the acknowledgement of a subscription does not have the id of its request".to_owned();
        let expected = "put the request's id, with its type, into subscriptionId of _meta";
        cx.check(&rule::SUB_04, &answer, named == Some(&id), what, expected);
    }
    Ok(())
}

/// The level of log messages can be set.
async fn set_log_level(cx: &mut Context) -> Result<(), Stop> {
    if cx.offer.capabilities.get("logging").is_none() {
        return Err(Stop::Skipped("the server does not declare logging".to_owned()));
    }
    let session = cx.session().await?;
    let (id, answer) = session.request("logging/setLevel", json!({ "level": "warning" })).await;
    let what = || format!("logging/setLevel is answered with {}", answer.summary(&id));
    cx.check(
        &rule::LOG_02,
        &answer,
        answer.result(&id).is_some(),
        what,
        "take any level of the specification",
    );
    Ok(())
}
