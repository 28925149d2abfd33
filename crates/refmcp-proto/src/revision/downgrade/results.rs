//! Results and failures in the shape of a revision.

use serde_json::{Value, json};

use crate::engine::{CallFailure, EngineConfig};
use crate::jsonrpc::{RpcError, code};
use crate::model::{
    Annotations, CallToolResult, ContentBlock, CustomResult, ExperimentalTask, Extra, Icon, Meta,
    MissingCapabilityData, Prompt, Resource, ResourceContents, ResourceTemplate, ResultMeta, ResultType,
    ServerResult, Task, Tool, UI_META,
};
use crate::revision::{BadArguments, InputMode, Method, Rules, StructuredOutput, Tasks};

/// Brings a result into the shape of a revision, and adds what every result of it must have.
pub fn result(rules: &Rules, config: &EngineConfig, result: &mut ServerResult) {
    match result {
        ServerResult::CallTool(result) => call_tool(rules, result),
        ServerResult::ListTools(result) => result.tools.iter_mut().for_each(|item| tool(rules, item)),
        ServerResult::ListResources(result) => {
            result.resources.iter_mut().for_each(|item| resource(rules, item));
        }
        ServerResult::ListResourceTemplates(result) => {
            result.resource_templates.iter_mut().for_each(|item| template(rules, item));
        }
        ServerResult::ReadDirectory(result) => {
            result.resources.iter_mut().for_each(|item| resource(rules, item));
        }
        ServerResult::ReadResource(result) => {
            result.contents.iter_mut().for_each(|item| contents(rules, item));
        }
        ServerResult::ListPrompts(result) => result.prompts.iter_mut().for_each(|item| prompt(rules, item)),
        ServerResult::GetPrompt(result) => {
            result.messages.iter_mut().for_each(|message| content(rules, &mut message.content));
        }
        ServerResult::CreateTask(task) if rules.tasks == Tasks::Experimental => {
            let members = Extra::from_iter([("task".to_owned(), Value::Object(experimental_task(task)))]);
            *result = CustomResult::new(members).into();
        }
        ServerResult::GetTask(task) if rules.tasks == Tasks::Experimental => {
            *result = ServerResult::GetExperimentalTask(Box::new(ExperimentalTask::take_from(task)));
        }
        ServerResult::ListTasks(tasks) => {
            let items = tasks.tasks.iter().map(|task| Value::Object(experimental_task(task))).collect();
            let next_cursor = tasks.next_cursor.take().map(|cursor| ("nextCursor".to_owned(), cursor.into()));
            let members = [("tasks".to_owned(), Value::Array(items))].into_iter().chain(next_cursor);
            *result = CustomResult::new(members.collect()).into();
        }
        _ => {}
    }
    stamp(rules, config, result);
    cache_hints(rules, config, result);
}

/// Adds the result type and the server's name, or removes them.
fn stamp(rules: &Rules, config: &EngineConfig, result: &mut ServerResult) {
    if !rules.stamped_results {
        *result.result_type_mut() = result.is_of_every_revision().then_some(ResultType::Complete);
        if let Some(meta) = result.meta_mut() {
            meta.server_info = None;
            meta.subscription_id = None;
            if meta.extra.is_empty() {
                *result.meta_mut() = None;
            }
        }
        return;
    }
    let kind = match result {
        ServerResult::InputRequired(_) => ResultType::InputRequired,
        ServerResult::CreateTask(_) => ResultType::Task,
        _ => ResultType::Complete,
    };
    result.result_type_mut().get_or_insert(kind);
    let who = match result {
        ServerResult::Discover(_) => &config.server_info,
        _ => &config.stamp,
    };
    result.meta_mut().get_or_insert_with(ResultMeta::default).server_info = Some(who.clone());
}

fn cache_hints(rules: &Rules, config: &EngineConfig, result: &mut ServerResult) {
    let has_hints = rules.cache_hints || result.is_of_every_revision();
    let Some((ttl, scope)) = result.cache_mut() else { return };
    if has_hints {
        let (time, whose) = &config.cache;
        ttl.get_or_insert_with(|| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        scope.get_or_insert_with(|| *whose);
    } else {
        *ttl = None;
        *scope = None;
    }
}

/// What a failure becomes: a tool result for the model, or an error.
pub fn failure(rules: &Rules, method: &Method, failure: CallFailure) -> Result<ServerResult, RpcError> {
    match failure {
        CallFailure::Rpc(error) => Err(error),
        CallFailure::ResourceNotFound { uri } => {
            Err(RpcError::new(rules.resource_not_found, "resource not found")
                .with_data(json!({ "uri": uri })))
        }
        CallFailure::BadArguments(what) => match rules.bad_arguments {
            BadArguments::ToolResult if *method == Method::CallTool => Ok(CallToolResult::error(what).into()),
            _ => Err(RpcError::invalid_params(what)),
        },
        CallFailure::MissingCapability { needs, what } => {
            let text = format!("the client does not support {what}");
            match rules.input_mode {
                InputMode::InputRequired => {
                    let data = MissingCapabilityData { required_capabilities: *needs, ..Default::default() };
                    let mut error = RpcError::new(code::MISSING_CAPABILITY, text);
                    error.data = serde_json::to_value(data).ok();
                    Err(error)
                }
                InputMode::ServerRequest if *method == Method::CallTool => {
                    Ok(CallToolResult::error(text).into())
                }
                InputMode::ServerRequest => Err(RpcError::invalid_request(text)),
            }
        }
    }
}

fn call_tool(rules: &Rules, result: &mut CallToolResult) {
    result.content.iter_mut().for_each(|block| content(rules, block));
    let fits = match rules.structured_output {
        StructuredOutput::Unknown => false,
        StructuredOutput::Object => result.structured_content.as_ref().is_some_and(Value::is_object),
        StructuredOutput::Any => true,
    };
    if !fits {
        result.structured_content = None;
    }
    // Absent means the same, but clients compare with `false`.
    result.is_error.get_or_insert(false);
}

/// The members of a task in 2025-11-25.
pub fn experimental_task(task: &Task) -> Extra {
    match serde_json::to_value(ExperimentalTask::take_from(&mut task.clone())) {
        Ok(Value::Object(members)) => members,
        _ => Extra::new(),
    }
}

fn tool(rules: &Rules, tool: &mut Tool) {
    if rules.tasks != Tasks::Experimental {
        tool.execution = None;
    }
    if !rules.tool_annotations {
        tool.annotations = None;
    }
    // Before tools had titles, their annotations did.
    if !rules.titles
        && let Some(title) = tool.title.take().filter(|_| rules.tool_annotations)
    {
        tool.annotations.get_or_insert_default().title.get_or_insert(title);
    }
    base_metadata(rules, &mut tool.title, &mut tool.meta, &mut tool.icons);
    let fits = match rules.structured_output {
        StructuredOutput::Unknown => false,
        StructuredOutput::Object => tool
            .output_schema
            .as_ref()
            .is_some_and(|schema| schema.get("type").and_then(Value::as_str) == Some("object")),
        StructuredOutput::Any => true,
    };
    if !fits {
        tool.output_schema = None;
    }
}

fn resource(rules: &Rules, resource: &mut Resource) {
    annotations(rules, &mut resource.annotations);
    base_metadata(rules, &mut resource.title, &mut resource.meta, &mut resource.icons);
}

fn template(rules: &Rules, template: &mut ResourceTemplate) {
    annotations(rules, &mut template.annotations);
    base_metadata(rules, &mut template.title, &mut template.meta, &mut template.icons);
}

fn prompt(rules: &Rules, prompt: &mut Prompt) {
    base_metadata(rules, &mut prompt.title, &mut prompt.meta, &mut prompt.icons);
    if !rules.titles {
        prompt.arguments.iter_mut().flatten().for_each(|argument| argument.title = None);
    }
}

/// Removes what tools, resources and prompts did not have from the start.
fn base_metadata(
    rules: &Rules,
    title: &mut Option<String>,
    meta: &mut Option<Meta>,
    icons: &mut Option<Vec<Icon>>,
) {
    if !rules.titles {
        *title = None;
    }
    item_meta(rules, meta);
    if !rules.icons {
        *icons = None;
    }
}

fn contents(rules: &Rules, contents: &mut ResourceContents) {
    item_meta(rules, &mut contents.meta);
}

/// Removes the metadata of items where a revision has none, but for that of apps, which belong to no revision.
fn item_meta(rules: &Rules, meta: &mut Option<Meta>) {
    if !rules.titles {
        *meta = meta.take().and_then(|mut meta| Some(Meta::from_iter([meta.remove_entry(UI_META)?])));
    }
}

fn annotations(rules: &Rules, annotations: &mut Option<Annotations>) {
    if let Some(annotations) = annotations
        && !rules.titles
    {
        annotations.last_modified = None;
    }
}

/// A content block; one that the revision does not know becomes text that says what it was.
pub fn content(rules: &Rules, block: &mut ContentBlock) {
    let note = match block {
        ContentBlock::Audio(audio) if !rules.audio => {
            Some(format!("[audio, {}, {} characters of base64]", audio.mime_type, audio.data.len()))
        }
        ContentBlock::ResourceLink(link) if !rules.resource_links => {
            Some(format!("[resource {}: {}]", link.name, link.uri))
        }
        _ => None,
    };
    if let Some(note) = note {
        *block = ContentBlock::text(note);
    }
    let (annotated, meta) = match block {
        ContentBlock::Text(text) => (&mut text.annotations, &mut text.meta),
        ContentBlock::Image(image) => (&mut image.annotations, &mut image.meta),
        ContentBlock::Audio(audio) => (&mut audio.annotations, &mut audio.meta),
        ContentBlock::Resource(embedded) => {
            contents(rules, &mut embedded.resource);
            (&mut embedded.annotations, &mut embedded.meta)
        }
        ContentBlock::ResourceLink(link) => return resource(rules, link),
        ContentBlock::ToolUse(_) | ContentBlock::ToolResult(_) | ContentBlock::Unknown(_) => return,
    };
    annotations(rules, annotated);
    meta.take_if(|_| !rules.titles);
}
