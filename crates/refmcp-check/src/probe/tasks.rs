//! Probes of tasks.

use refmcp_proto::model::keys;
use refmcp_proto::rule;
use serde_json::{Value, json};

use super::{Context, Probe, Stop};
use crate::arguments::minimal;
use crate::offer::name;

pub(super) static PROBES: &[Probe] = &[
    Probe::gentle("unknown-task", &[&rule::TASK_10, &rule::XTASK_10, &rule::TSK_37], |cx| {
        Box::pin(unknown_task(cx))
    }),
    Probe::harsh("task-required", &[&rule::TSK_05], |cx| Box::pin(task_required(cx))),
    Probe::harsh("task-forbidden", &[&rule::TSK_06], |cx| Box::pin(task_forbidden(cx))),
    Probe::harsh("task-unlisted", &[&rule::TSK_07], |cx| Box::pin(task_unlisted(cx))),
    Probe::harsh("task-named-twice", &[&rule::TSK_24], |cx| Box::pin(task_named_twice(cx))),
];

/// The extension of tasks.
const TASKS: &str = "io.modelcontextprotocol/tasks";

/// The id of no task.
const NO_TASK: &str = "refmcp-no-such-task";

/// An unknown task is refused, whatever is asked about it.
async fn unknown_task(cx: &mut Context) -> Result<(), Stop> {
    let own = cx.offer.capabilities.get("tasks").is_some();
    let extension = cx.offer.capabilities.get("extensions").is_some_and(|all| all.get(TASKS).is_some());
    if !own && !extension {
        return Err(Stop::Skipped("the server has no tasks".to_owned()));
    }
    let in_session = rule::TASK_10.revisions.contains(cx.revision);
    let rule = if in_session { &rule::TASK_10 } else { &rule::XTASK_10 };
    let cancels = cx.offer.capabilities.pointer("/tasks/cancel").is_some();
    let session = cx.session().await?;
    let meta = json!({ keys::CLIENT_CAPABILITIES: { "extensions": { TASKS: {} } } });
    let params = match extension {
        true => json!({ "taskId": NO_TASK, "_meta": meta }),
        false => json!({ "taskId": NO_TASK }),
    };
    let methods =
        [("tasks/get", true), ("tasks/result", in_session), ("tasks/cancel", in_session && cancels)];
    let mut answers = Vec::new();
    for (method, _) in methods.into_iter().filter(|(_, is_judged)| *is_judged) {
        let (id, answer) = session.request(method, params.clone()).await;
        answers.push((method, id, answer));
    }
    for (method, id, answer) in answers {
        let kept = answer.error_code(&id) == Some(-32602);
        let what = || format!("{method} of an unknown task is answered with {}", answer.summary(&id));
        if method == "tasks/get" {
            cx.check(rule, &answer, kept, what, "refuse it with the error -32602");
        }
        cx.check(&rule::TSK_37, &answer, kept, what, "refuse it with the error -32602");
    }
    Ok(())
}

/// A tool that may be called and has this support of tasks, with arguments.
fn tool(cx: &Context, has: impl Fn(&str) -> bool, what: &str) -> Result<(String, Value), Stop> {
    if cx.offer.capabilities.pointer("/tasks/requests/tools/call").is_none() {
        return Err(Stop::Skipped("the server runs no tools as tasks".to_owned()));
    }
    let usable = |tool: &Value| {
        let support = tool.pointer("/execution/taskSupport").and_then(Value::as_str).unwrap_or("forbidden");
        let name = name(tool).filter(|name| has(support) && cx.shared.callable.contains(*name))?;
        let arguments = minimal(tool.get("inputSchema")?.as_object()?)?;
        Some((name.to_owned(), arguments))
    };
    let found = cx.offer.tools.items.iter().find_map(usable);
    found.ok_or_else(|| cx.offer.tools.without(&format!("no tool that may be called {what}")))
}

/// A tool that runs as a task only is not run without one.
async fn task_required(cx: &mut Context) -> Result<(), Stop> {
    let (tool, arguments) = tool(cx, |support| support == "required", "runs as a task only")?;
    let session = cx.session().await?;
    let (id, answer) = session.request("tools/call", json!({ "name": tool, "arguments": arguments })).await;
    let kept = answer.error_code(&id) == Some(-32601);
    let what = || {
        format!(
            "{tool} has taskSupport \"required\"; without a task it is answered with {}",
            answer.summary(&id)
        )
    };
    cx.check(&rule::TSK_05, &answer, kept, what, "refuse the call with the error -32601");
    Ok(())
}

/// A tool that does not run as a task is not run as one.
async fn task_forbidden(cx: &mut Context) -> Result<(), Stop> {
    let (tool, arguments) = tool(cx, |support| support == "forbidden", "does not run as a task")?;
    let session = cx.session().await?;
    let params = json!({ "name": tool, "arguments": arguments, "task": {} });
    let (id, answer) = session.request("tools/call", params).await;
    let kept = answer.error_code(&id) == Some(-32601);
    let what =
        || format!("{tool} does not run as a task; as one it is answered with {}", answer.summary(&id));
    cx.check(&rule::TSK_06, &answer, kept, what, "refuse the call with the error -32601");
    Ok(())
}

/// A request that cannot become a task gets its usual result.
async fn task_unlisted(cx: &mut Context) -> Result<(), Stop> {
    // Only a list that is given without a task shows what a task changes.
    let offer = cx.offer.clone();
    let lists = [("tools", &offer.tools), ("prompts", &offer.prompts), ("resources", &offer.resources)];
    let mut declared = lists.into_iter().filter(|(list, _)| offer.capabilities.get(list).is_some());
    let first = declared.clone().next();
    let Some((list, _)) = declared.find(|(_, list)| list.missing.is_none()) else {
        let stop = first.map(|(_, list)| list.without("no list is given"));
        return Err(stop.unwrap_or_else(|| Stop::Skipped("the server has no lists".to_owned())));
    };
    let session = cx.session().await?;
    let method = format!("{list}/list");
    let (id, answer) = session.request(&method, json!({ "task": {} })).await;
    let kept =
        answer.result(&id).is_some_and(|result| result.get(list).is_some() && result.get("task").is_none());
    let what = || format!("{method} with a task is answered with {}", answer.summary(&id));
    cx.check(&rule::TSK_07, &answer, kept, what, "ignore task, and answer as usual");
    Ok(())
}

/// A task is the one of the parameters, not the one of `_meta`.
async fn task_named_twice(cx: &mut Context) -> Result<(), Stop> {
    let (tool, arguments) = tool(cx, |support| support != "forbidden", "runs as a task")?;
    let cancels = cx.offer.capabilities.pointer("/tasks/cancel").is_some();
    let session = cx.session().await?;
    let params = json!({ "name": tool, "arguments": arguments, "task": { "ttl": 60_000 } });
    let (id, answer) = session.request("tools/call", params).await;
    let created = answer.result(&id).and_then(|result| result.pointer("/task/taskId")).cloned();
    let Some(task) = created else {
        return Err(Stop::NotVerified(format!("{tool} did not become a task: {}", answer.summary(&id))));
    };
    let meta = json!({ keys::RELATED_TASK: { "taskId": NO_TASK } });
    let (id, answer) = session.request("tasks/get", json!({ "taskId": task, "_meta": meta })).await;
    if cancels {
        session.request("tasks/cancel", json!({ "taskId": task })).await;
    }
    let kept = answer.result(&id).and_then(|result| result.get("taskId")) == Some(&task);
    let what =
        || format!("tasks/get whose _meta names another task is answered with {}", answer.summary(&id));
    cx.check(&rule::TSK_24, &answer, kept, what, "answer for params.taskId, whatever _meta says");
    Ok(())
}
