//! Probes of messages: ids, notifications, batches, what is no message.

use refmcp_proto::revision::{BatchRule, Lifecycle};
use refmcp_proto::rule;
use serde_json::{Value, json};

use super::{Context, Probe, Stop, reason};
use crate::connection::{Connection, Wants};
use crate::session::{Session, check_access, notification};

pub(super) static PROBES: &[Probe] = &[
    Probe::gentle("ids", &[&rule::RPC_05, &rule::T_14], |cx| Box::pin(ids(cx))),
    Probe::gentle("requests-at-once", &[&rule::RPC_05], |cx| Box::pin(requests_at_once(cx))),
    Probe::gentle("declared-lists", &[&rule::RPC_22], |cx| Box::pin(declared_lists(cx))),
    Probe::gentle("unknown-method", &[&rule::RPC_01, &rule::RPC_06, &rule::MHTTP_11], |cx| {
        Box::pin(unknown_method(cx))
    }),
    Probe::gentle("unknown-notification", &[&rule::RPC_07, &rule::HTTP_05, &rule::MHTTP_03], |cx| {
        Box::pin(unknown_notification(cx))
    }),
    Probe::harsh("no-json", &[&rule::RPC_01, &rule::RPC_05], |cx| Box::pin(no_json(cx))).once(),
    Probe::harsh("batch", &[&rule::RPC_08, &rule::RPC_10, &rule::STDIO_14], |cx| Box::pin(batch(cx))),
];

/// A method that every server has.
pub(super) fn sentinel_method(session: &Session) -> &'static str {
    match session.revision.lifecycle() {
        Lifecycle::Handshake => "ping",
        Lifecycle::PerRequest => "server/discover",
    }
}

/// Responses have the ids of their requests, with their types.
async fn ids(cx: &mut Context) -> Result<(), Stop> {
    let ids =
        [json!(0), json!(-7), json!(9_007_199_254_740_991_i64), json!("1"), json!("ü 😀 \"\\"), json!("")];
    for id in ids {
        let session = cx.session().await?;
        let text = session.message_with_id(&id, sentinel_method(session), json!({})).to_string();
        let answer = session.exchange(&text, &Wants::Response(id.clone())).await;
        let kept = answer.response(&id).is_some();
        let mut others = answer.messages.iter().filter(|message| message.get("method").is_none());
        let other = others.find_map(|message| message.get("id"));
        let same_digits = other.is_some_and(|other| {
            other.as_str().map_or_else(|| other.to_string(), str::to_owned)
                == id.as_str().map_or_else(|| id.to_string(), str::to_owned)
        });
        let expected = "answer each request with its very id, of the same type and value";
        let what = || match other {
            Some(other) => format!("a request with the id {id} is answered with the id {other}"),
            None => format!("a request with the id {id} is answered with {}", answer.summary(&id)),
        };
        if kept || same_digits {
            cx.check(&rule::T_14, &answer, kept, what, expected);
        }
        cx.check(&rule::RPC_05, &answer, kept, what, expected);
        if !kept {
            break;
        }
    }
    Ok(())
}

/// Requests that run at the same time get their own responses.
async fn requests_at_once(cx: &mut Context) -> Result<(), Stop> {
    // A list that is not given by itself says nothing about requests at the same time.
    let has_tools = cx.offer.capabilities.get("tools").is_some() && cx.offer.tools.missing.is_none();
    let session = cx.session().await?;
    let sentinel = sentinel_method(session);
    let methods = [sentinel, if has_tools { "tools/list" } else { sentinel }, sentinel];
    let requests = methods.map(|method| session.message(method, json!({})));
    let answers = session.exchange_all(&requests).await;
    for ((id, _), (method, answer)) in requests.iter().zip(methods.into_iter().zip(answers)) {
        let count = answer.messages.iter().filter(|message| message.get("id") == Some(id)).count();
        if count == 0 && check_access(&answer).is_err() {
            return Err(Stop::NotVerified(format!(
                "one of three requests at the same time is answered with {}",
                answer.summary(id)
            )));
        }
        // An error belongs to any method.
        let is_of_method =
            answer.result(id).is_none_or(|result| (method == "tools/list") == result.get("tools").is_some());
        let right = count == 1 && is_of_method;
        let what = || match count {
            0 => format!("one of three requests at the same time is answered with {}", answer.summary(id)),
            1 => "one of three requests at the same time has the response of another".to_owned(),
            _ => "one of three requests at the same time is answered twice".to_owned(),
        };
        cx.check(&rule::RPC_05, &answer, right, what, "answer each request once, with its id");
    }
    Ok(())
}

/// Lists that the server declares are answered, if only with an error.
async fn declared_lists(cx: &mut Context) -> Result<(), Stop> {
    let lists = [
        ("tools", "tools/list"),
        ("resources", "resources/list"),
        ("resources", "resources/templates/list"),
        ("prompts", "prompts/list"),
    ];
    let offer = cx.offer.clone();
    for (_, method) in lists.into_iter().filter(|(list, _)| offer.capabilities.get(list).is_some()) {
        let session = cx.session().await?;
        let (id, answer) = session.request(method, json!({})).await;
        check_access(&answer).map_err(|error| Stop::NotVerified(reason(error)))?;
        let is_answered = !answer.late && answer.ended.is_none();
        let what = || format!("{method} is answered with {}", answer.summary(&id));
        cx.check(&rule::RPC_22, &answer, is_answered, what, "answer every request, with an error if need be");
        if answer.ended.is_some() {
            break;
        }
    }
    Ok(())
}

/// An unknown method is an error.
async fn unknown_method(cx: &mut Context) -> Result<(), Stop> {
    let session = cx.session().await?;
    let (id, answer) = session.request("refmcp/no-such-method", json!({})).await;
    let over_http = matches!(session.connection, Connection::Http(_));
    let code = answer.error_code(&id);
    let what = || format!("a request with an unknown method is answered with {}", answer.summary(&id));
    cx.check(
        &rule::RPC_01,
        &answer,
        code == Some(-32601),
        what,
        "refuse an unknown method with the error -32601",
    );
    if let Some(error) = answer.error(&id) {
        let right = code.is_some() && error.get("message").is_some_and(Value::is_string);
        let what = || "an error has no integer code or no message".to_owned();
        cx.check(&rule::RPC_06, &answer, right, what, "give every error an integer code and a message");
    }
    if over_http {
        let right = code == Some(-32601) && answer.status == Some(404);
        let what = || format!("a request with an unknown method is answered with {}", answer.summary(&id));
        cx.check(&rule::MHTTP_11, &answer, right, what, "answer with status 404 and the error -32601");
    }
    Ok(())
}

/// A notification gets no response.
async fn unknown_notification(cx: &mut Context) -> Result<(), Stop> {
    let session = cx.session().await?;
    let text = notification("notifications/refmcp/unknown", None).to_string();
    let mut answer = session.notify(&text).await;
    let expected = "answer a notification with nothing";
    if matches!(session.connection, Connection::Http(_)) {
        let empty = answer.messages.is_empty() && answer.junk.is_empty();
        let right = (answer.status == Some(202) && empty) || answer.status.is_some_and(|it| it >= 400);
        let what = || {
            let body = if empty { "no body" } else { "a body" };
            format!("a notification is answered with status {} and {body}", answer.status.unwrap_or(0))
        };
        let expected = "answer with 202 and no body, or with an error status";
        cx.check(&rule::HTTP_05, &answer, right, what, expected);
        cx.check(&rule::MHTTP_03, &answer, right, what, expected);
        let answered = answer.messages.iter().any(|message| message.get("result").is_some());
        cx.check(&rule::RPC_07, &answer, !answered, || "a notification has a result".to_owned(), expected);
        return Ok(());
    }
    let (id, after) = session.sentinel().await;
    answer.exchange.answer.clone_from(&after.exchange.answer);
    answer.exchange.repeat = cx.repeat();
    if after.response(&id).is_none() {
        return Err(Stop::NotVerified(format!("a request after it is answered with {}", after.summary(&id))));
    }
    // A response with an id may be a late one to another request.
    let answered = after.nameless().is_some();
    cx.check(&rule::RPC_07, &answer, !answered, || "a notification is answered".to_owned(), expected);
    Ok(())
}

/// A server survives what is no JSON.
async fn no_json(cx: &mut Context) -> Result<(), Stop> {
    let session = cx.session().await?;
    let text = r#"{"jsonrpc":"2.0","id":1,"method":"#;
    let mut answer = session.notify(text).await;
    let (id, after) = session.sentinel().await;
    if answer.status.is_none() {
        answer.exchange.answer.clone_from(&after.exchange.answer);
        answer.messages.clone_from(&after.messages);
        answer.messages.retain(|message| message.get("id") != Some(&id));
    }
    answer.exchange.repeat = cx.repeat();
    (answer.late, answer.ended) = (after.late, after.ended.clone());
    let alive = after.result(&id).is_some();
    let what = || format!("after input that is no JSON a request is answered with {}", after.summary(&id));
    cx.check(&rule::RPC_01, &answer, alive, what, "refuse input that is no JSON, and go on");
    if let Some(response) = answer.messages.iter().find(|message| message.get("method").is_none()) {
        let right = response.get("error").is_some() && response.get("id").is_none_or(Value::is_null);
        let what = || "input that is no JSON is answered with a result, or with an id".to_owned();
        cx.check(&rule::RPC_05, &answer, right, what, "answer with the error -32700 without an id");
    }
    Ok(())
}

/// Batches are read in the revision that has them, and refused in others.
async fn batch(cx: &mut Context) -> Result<(), Stop> {
    let accepted = cx.revision.rules().batches == BatchRule::Accepted;
    let session = cx.session().await?;
    let on_stdio = session.is_stdio();
    let method = sentinel_method(session);
    let ((one, first), (two, second)) =
        (session.message(method, json!({})), session.message(method, json!({})));
    let text = Value::Array(vec![first, second]).to_string();
    if accepted {
        let answer = session.exchange(&text, &Wants::Responses(vec![one.clone(), two.clone()])).await;
        let right = answer.result(&one).is_some() && answer.result(&two).is_some();
        let what = || format!("a batch of two requests is answered with {}", answer.summary(&one));
        let expected = "answer each request of a batch";
        cx.check(&rule::RPC_08, &answer, right, what, expected);
        if on_stdio {
            cx.check(&rule::STDIO_14, &answer, right, what, expected);
        }
        return Ok(());
    }
    let within = cx.within() / 4;
    let session = cx.session().await?;
    let answer = session.exchange_within(&text, &Wants::Message, within).await;
    if answer.late {
        return Err(Stop::Skipped("an array is neither answered nor refused".to_owned()));
    }
    let taken = answer.result(&one).is_some() || answer.result(&two).is_some();
    let what = || "an array of requests is answered as a batch".to_owned();
    cx.check(&rule::RPC_10, &answer, !taken, what, "refuse an array with the error -32600");
    Ok(())
}
