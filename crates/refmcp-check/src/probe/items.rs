//! Probes of resources, prompts, completion and the pages of lists.

use std::time::Duration;

use refmcp_proto::rule;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::{Context, Probe, Stop};
use crate::offer::{List, name};

pub(super) static PROBES: &[Probe] = &[
    Probe::gentle("invalid-cursor", &[&rule::PAGE_03], |cx| Box::pin(invalid_cursor(cx))),
    Probe::gentle("unknown-resource", &[&rule::RES_03, &rule::T_05], |cx| Box::pin(unknown_resource(cx))),
    Probe::gentle("path-out-of-directory", &[&rule::RES_06], |cx| Box::pin(path_out_of_directory(cx))).once(),
    Probe::gentle("read-resources", &[], |cx| Box::pin(read_resources(cx))).for_auditor(&[&rule::RES_02]),
    Probe::gentle("unknown-prompt", &[&rule::PROMPT_02], |cx| Box::pin(unknown_prompt(cx))),
    Probe::gentle("prompt-without-argument", &[&rule::PROMPT_02], |cx| Box::pin(prompt_without_argument(cx))),
    Probe::gentle("get-prompts", &[], |cx| Box::pin(get_prompts(cx))).for_auditor(&[&rule::PROMPT_03]),
    Probe::gentle("completion", &[&rule::COMP_04], |cx| Box::pin(completion(cx))),
];

/// Items of a list that are read.
const MAX_READ: usize = 100;

/// The time for all items of a list.
const ALL_READS: Duration = Duration::from_secs(12);

fn has(cx: &Context, capability: &str) -> Result<(), Stop> {
    match cx.offer.capabilities.get(capability) {
        Some(_) => Ok(()),
        None => Err(Stop::Skipped(format!("the server does not declare {capability}"))),
    }
}

/// An invalid cursor is refused.
async fn invalid_cursor(cx: &mut Context) -> Result<(), Stop> {
    let offer = cx.offer.clone();
    let lists = [
        ("tools", "tools/list", &offer.tools),
        ("resources", "resources/list", &offer.resources),
        ("prompts", "prompts/list", &offer.prompts),
    ];
    for (capability, method, list) in lists {
        if has(cx, capability).is_err() {
            continue;
        }
        // Whatever refuses the whole list has nothing to do with the cursor.
        if let (true, Some(why)) = (list.items.is_empty(), &list.missing) {
            cx.not_verified(&rule::PAGE_03, why);
            continue;
        }
        let session = cx.session().await?;
        let (id, answer) = session.request(method, json!({ "cursor": "refmcp-no-such-cursor" })).await;
        let kept = answer.error_code(&id) == Some(-32602);
        let what = || format!("{method} with an invalid cursor is answered with {}", answer.summary(&id));
        cx.check(&rule::PAGE_03, &answer, kept, what, "refuse it with the error -32602");
    }
    Ok(())
}

/// An unknown resource is an error.
async fn unknown_resource(cx: &mut Context) -> Result<(), Stop> {
    has(cx, "resources")?;
    let code = cx.revision.rules().resource_not_found;
    let session = cx.session().await?;
    let (id, answer) =
        session.request("resources/read", json!({ "uri": "refmcp-check://no/such/resource" })).await;
    let kept = answer.error_code(&id) == Some(code);
    let what = || format!("resources/read of an unknown URI is answered with {}", answer.summary(&id));
    let expected = format!("refuse it with the error {code}");
    cx.check(&rule::RES_03, &answer, kept, what, &expected);
    cx.check(&rule::T_05, &answer, kept, what, &expected);
    Ok(())
}

/// No path leads out of a directory.
async fn path_out_of_directory(cx: &mut Context) -> Result<(), Stop> {
    let uris = cx.offer.resources.items.iter().filter_map(|resource| resource.get("uri")?.as_str());
    let files: Vec<&str> = uris.filter(|uri| uri.starts_with("file:///")).collect();
    let Some((directory, _)) = files.first().and_then(|file| file.rsplit_once('/')) else {
        return Err(cx.offer.resources.without("no resource is a file"));
    };
    let up = "/..".repeat(12);
    let tries = [
        format!("{directory}{up}/etc/passwd"),
        format!("{directory}/{}etc%2Fpasswd", "%2E%2E%2F".repeat(12)),
    ];
    for uri in tries {
        let session = cx.session().await?;
        let (id, answer) = session.request("resources/read", json!({ "uri": uri })).await;
        if answer.late || answer.ended.is_some() {
            return Err(Stop::NotVerified(format!(
                "resources/read is answered with {}",
                answer.summary(&id)
            )));
        }
        let contents = answer.result(&id).and_then(|result| result.get("contents")).map(Value::to_string);
        let leaked = contents.is_some_and(|contents| contents.contains("root:") && contents.contains(":/"));
        let what = || "a URI with parent directories reads a file outside of the directory".to_owned();
        cx.check(
            &rule::RES_06,
            &answer,
            !leaked,
            what,
            "resolve paths first, and refuse those that lead out",
        );
    }
    Ok(())
}

/// Reads resources, for the auditor.
async fn read_resources(cx: &mut Context) -> Result<(), Stop> {
    let offer = cx.offer.clone();
    each_item(cx, &offer.resources, "resources/read", |it| json!({ "uri": it.get("uri") })).await
}

/// Sends a request for each item of a list. Items that are left out are a reason not to verify.
async fn each_item(
    cx: &mut Context,
    list: &List,
    method: &str,
    params: impl Fn(&Value) -> Value,
) -> Result<(), Stop> {
    let until = Instant::now() + ALL_READS;
    let (mut done, all) = (0, list.items.len());
    for item in list.items.iter().take(MAX_READ) {
        if Instant::now() > until {
            break;
        }
        let session = cx.session().await?;
        let (id, answer) = session.request(method, params(item)).await;
        if !session.is_healthy {
            let shown = item.get("uri").or_else(|| item.get("name")).unwrap_or(item);
            let why = format!("{method} of {shown} is answered with {}", answer.summary(&id));
            return Err(Stop::NotVerified(why));
        }
        done += 1;
    }
    match &list.missing {
        _ if done < all => Err(Stop::NotVerified(format!(
            "{method} was tried for {done} of {all} items: for {MAX_READ} at most, and for {} seconds",
            ALL_READS.as_secs()
        ))),
        Some(missing) => Err(Stop::NotVerified(missing.clone())),
        None => Ok(()),
    }
}

/// An unknown prompt is refused.
async fn unknown_prompt(cx: &mut Context) -> Result<(), Stop> {
    has(cx, "prompts")?;
    let session = cx.session().await?;
    let (id, answer) = session.request("prompts/get", json!({ "name": "refmcp_no_such_prompt" })).await;
    let kept = answer.error_code(&id) == Some(-32602);
    let what = || format!("prompts/get of an unknown prompt is answered with {}", answer.summary(&id));
    cx.check(&rule::PROMPT_02, &answer, kept, what, "refuse it with the error -32602");
    Ok(())
}

fn required(prompt: &Value) -> Vec<&str> {
    let arguments = prompt.get("arguments").and_then(Value::as_array).into_iter().flatten();
    arguments.filter(|argument| argument.get("required") == Some(&json!(true))).filter_map(name).collect()
}

/// A prompt without a required argument is refused.
async fn prompt_without_argument(cx: &mut Context) -> Result<(), Stop> {
    let offer = cx.offer.clone();
    let Some(prompt) = offer.prompts.items.iter().find(|prompt| !required(prompt).is_empty()) else {
        return Err(offer.prompts.without("no prompt has a required argument"));
    };
    let session = cx.session().await?;
    let (id, answer) = session.request("prompts/get", json!({ "name": name(prompt) })).await;
    let kept = answer.error_code(&id) == Some(-32602);
    let what = || format!("prompts/get without a required argument is answered with {}", answer.summary(&id));
    cx.check(&rule::PROMPT_02, &answer, kept, what, "refuse it with the error -32602");
    Ok(())
}

/// Gets prompts, for the auditor.
async fn get_prompts(cx: &mut Context) -> Result<(), Stop> {
    let offer = cx.offer.clone();
    let params = |prompt: &Value| {
        let arguments: Map<String, Value> =
            required(prompt).into_iter().map(|name| (name.to_owned(), json!("x"))).collect();
        json!({ "name": name(prompt), "arguments": arguments })
    };
    each_item(cx, &offer.prompts, "prompts/get", params).await
}

/// A wrong reference is refused; a right one is completed, for the auditor.
async fn completion(cx: &mut Context) -> Result<(), Stop> {
    has(cx, "completions")?;
    let offer = cx.offer.clone();
    let session = cx.session().await?;
    let params = json!({
        "ref": { "type": "ref/prompt", "name": "refmcp_no_such_prompt" },
        "argument": { "name": "refmcp_no_such_argument", "value": "" },
    });
    let (id, answer) = session.request("completion/complete", params).await;
    let kept = answer.error_code(&id) == Some(-32602);
    let what = || format!("completion for an unknown prompt is answered with {}", answer.summary(&id));
    cx.check(&rule::COMP_04, &answer, kept, what, "refuse a reference to nothing with the error -32602");
    let argument = |prompt: &Value| Some(name(prompt.pointer("/arguments/0")?)?.to_owned());
    let known = offer.prompts.items.iter().find_map(|prompt| Some((name(prompt)?, argument(prompt)?)));
    if let Some((prompt, argument)) = known {
        let session = cx.session().await?;
        let params = json!({
            "ref": { "type": "ref/prompt", "name": prompt }, "argument": { "name": argument, "value": "" },
        });
        session.request("completion/complete", params).await;
    }
    Ok(())
}
