//! The features, one function each; see `../../README.md`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::exit_recorder::{self, ExitRecorder};
use crate::form;
use crate::session::{
    Desk, LISTS, Reply, Session, Watch, key, question_refusal, rpc_error, run_number, unreadable,
};

/// How long to listen before believing that nothing comes.
const QUIET: Duration = Duration::from_millis(250);
const NEWEST: &str = "2026-07-28";
const TODO: &str = "file:///notes/todo.txt";
const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
const TOOLS: &[&str] = &[
    "echo",
    "sum",
    "get_weather",
    "long_task",
    "slow",
    "big_result",
    "image",
    "audio",
    "resource_link",
    "embedded_resource",
    "annotated",
    "mixed",
    "fail",
    "protocol_error",
    "log_all",
    "ask_user",
    "ask_model",
    "list_roots",
    "add_tool",
    "remove_tool",
    "add_prompt",
    "remove_prompt",
    "add_resource",
    "remove_resource",
    "touch_resource",
    "about_me",
    "cancellations",
    "test_simple_text",
    "test_image_content",
];
const RESOURCES: &[&str] = &[
    TODO,
    "file:///data/custom.json",
    "file:///project/src/main.rs",
    "file:///resources/notes.txt",
    "file:///resources/plans.md",
    "file:///resources/diagram.png",
    "test://static-text",
    "test://static-binary",
];
const PROMPTS: &[&str] =
    &["code_review", "bug_report", "refactor", "test_simple_prompt", "test_prompt_with_arguments"];
const PNG: &[u8] = b"\x89PNG\r\n";

pub const FEATURES: &[&str] = &[
    "handshake",
    "tools/list",
    "pagination",
    "text",
    "image",
    "audio",
    "resource_link",
    "embedded_resource",
    "annotated",
    "mixed",
    "structured_output",
    "tool_error",
    "protocol_error",
    "invalid_arguments",
    "resources/list",
    "resources/read",
    "resource_templates",
    "resource_not_found",
    "subscribe",
    "list_changed",
    "prompts/list",
    "prompts/get",
    "completion",
    "logging",
    "progress",
    "cancellation",
    "sampling",
    "elicitation_form",
    "elicitation_decline",
    "elicitation_url",
    "roots",
    "client_tasks",
    "concurrent_calls",
    "ping",
    "discover",
    "resume",
    "clean_exit",
];

/// rmcp cannot do it, or the revision does not have it; the text is the evidence.
#[derive(Debug)]
pub struct Unsupported(pub String);

impl std::fmt::Display for Unsupported {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unsupported {}

pub struct Scenario {
    revision: String,
    server: Vec<String>,
    folder: PathBuf,
    exit_recorder: ExitRecorder,
    desk: Arc<Desk>,
    session: Option<Session>,
}

/// What a feature has to say when it is fine.
type Detail = Result<String>;

impl Scenario {
    pub fn new(revision: String, server: Vec<String>, folder: PathBuf) -> Result<Self> {
        let exit_recorder = ExitRecorder::new(&server, &folder, false)?;
        Ok(Self { revision, server, folder, exit_recorder, desk: Desk::new(), session: None })
    }

    /// `stdio`, `http`, `sse` or `websocket`.
    pub fn transport(&self) -> &'static str {
        exit_recorder::transport_of(&self.server)
    }

    /// What rmcp says to a transport that it does not have: its one transport for URLs is tried there, and must not
    /// find streamable HTTP. Any other error is left to the handshake.
    pub async fn refusal(&self) -> Option<String> {
        let transport = self.transport();
        let fitting = match transport {
            "sse" => "HTTP 405",
            "websocket" => "builder error for url (ws://",
            _ => return None,
        };
        let error = Session::connect(&self.revision, self.exit_recorder.place(), &self.desk).await.err()?;
        let reason = format!("rmcp has no transport for {transport}; its streamable HTTP says: {error:#}");
        reason.contains(fitting).then_some(reason)
    }

    pub async fn run(&mut self, feature: &str) -> Detail {
        self.desk.begin();
        let detail = self.check(feature).await?;
        let requests = self.desk.server_requests();
        ensure!(
            !self.modern() || requests.is_empty(),
            "requests of the server, which this revision does not have: {requests:?}"
        );
        Ok(detail)
    }

    async fn check(&mut self, feature: &str) -> Detail {
        match feature {
            "handshake" => self.handshake().await,
            "tools/list" => self.tools_list().await,
            "pagination" => self.pagination().await,
            "text" => self.text().await,
            "image" => self.image().await,
            "audio" => self.audio().await,
            "resource_link" => self.resource_link().await,
            "embedded_resource" => self.embedded_resource().await,
            "annotated" => self.annotated().await,
            "mixed" => self.mixed().await,
            "structured_output" => self.structured_output().await,
            "tool_error" => self.tool_error().await,
            "protocol_error" => self.protocol_error().await,
            "invalid_arguments" => self.invalid_arguments().await,
            "resources/list" => self.resources_list().await,
            "resources/read" => self.resources_read().await,
            "resource_templates" => self.resource_templates().await,
            "resource_not_found" => self.resource_not_found().await,
            "subscribe" => self.subscribe().await,
            "list_changed" => self.list_changed().await,
            "prompts/list" => self.prompts_list().await,
            "prompts/get" => self.prompts_get().await,
            "completion" => self.completion().await,
            "logging" => self.logging().await,
            "progress" => self.progress().await,
            "cancellation" => self.cancellation().await,
            "sampling" => self.sampling().await,
            "elicitation_form" => self.elicitation_form().await,
            "elicitation_decline" => self.elicitation_decline().await,
            "elicitation_url" => self.elicitation_url().await,
            "roots" => self.roots().await,
            "client_tasks" => self.client_tasks().await,
            "concurrent_calls" => self.concurrent_calls().await,
            "ping" => self.ping().await,
            "discover" => self.discover().await,
            "resume" => self.resume().await,
            "clean_exit" => self.clean_exit().await,
            _ => bail!("no such feature"),
        }
    }

    /// The revision that is spoken, as far as it is known.
    pub fn revision(&self) -> String {
        let server = self.session.as_ref().and_then(|session| session.server().ok());
        let spoken = server.and_then(|server| server["protocolVersion"].as_str().map(str::to_owned));
        spoken.unwrap_or_else(|| self.revision.clone())
    }

    fn since(&self, revision: &str) -> bool {
        self.revision.as_str() >= revision
    }

    fn modern(&self) -> bool {
        self.since(NEWEST)
    }

    fn session(&self) -> Result<&Session> {
        self.session.as_ref().context("no session: the handshake failed")
    }

    async fn call(&self, name: &str, arguments: Value) -> Result<Value> {
        self.session()?.call(name, arguments, None).await
    }

    async fn ok(&self, name: &str, arguments: Value) -> Result<Value> {
        succeeded(name, self.call(name, arguments).await?)
    }

    async fn names(&self, kind: &str) -> Result<Vec<String>> {
        Ok(strings(&self.session()?.list_all(kind).await?, key(kind)))
    }

    /// The server reports the named changes while the watch lives, by whatever means the revision has.
    async fn watch(&self, filter: Value) -> Result<Option<Watch>> {
        self.desk.clear();
        if !self.modern() {
            return Ok(None);
        }
        Ok(Some(self.session()?.listen(filter, &self.desk).await?))
    }

    async fn handshake(&mut self) -> Detail {
        self.session = Some(Session::connect(&self.revision, self.exit_recorder.place(), &self.desk).await?);
        let server = self.session()?.server()?;
        let (info, capabilities) = (&server["serverInfo"], &server["capabilities"]);
        same("negotiated revision", &server["protocolVersion"], &json!(self.revision))?;
        same("server name", &info["name"], &json!("RefMCP-TestServer"))?;
        ensure!(info["version"].as_str().is_some_and(|version| !version.is_empty()), "no server version");
        for kind in ["tools", "prompts", "resources"] {
            same(&format!("{kind}.listChanged"), &capabilities[kind]["listChanged"], &json!(true))?;
        }
        same("resources.subscribe", &capabilities["resources"]["subscribe"], &json!(true))?;
        ensure!(capabilities["logging"].is_object(), "no logging capability");
        if self.since("2025-03-26") {
            ensure!(capabilities["completions"].is_object(), "no completions capability");
        }
        Ok(format!("{info}, capabilities {capabilities}"))
    }

    async fn tools_list(&mut self) -> Detail {
        let tools = self.session()?.list_all("tools").await?;
        has_all(&strings(&tools, "name"), TOOLS)?;
        for tool in &tools {
            ensure!(tool["description"].is_string(), "{} has no description", tool["name"]);
            same(
                &format!("inputSchema of {}", tool["name"]),
                &tool["inputSchema"]["type"],
                &json!("object"),
            )?;
        }
        let sum = item(&tools, "name", "sum")?;
        let arguments = sum["inputSchema"]["properties"].as_object().context("sum has no arguments")?;
        ensure!(
            arguments.len() == 2 && arguments.contains_key("a") && arguments.contains_key("b"),
            "{arguments:?}"
        );
        ensure!(
            sum["outputSchema"].is_object() == self.since("2025-06-18"),
            "outputSchema of sum: {}",
            sum["outputSchema"]
        );
        ensure!(!self.since("2025-03-26") || sum["annotations"].is_object(), "no annotations of sum");
        ensure!(!self.since("2025-06-18") || sum["title"].is_string(), "no title of sum");
        Ok(format!("{} tools", tools.len()))
    }

    async fn pagination(&mut self) -> Detail {
        let exit_recorder = ExitRecorder::new(&self.server, &self.folder, true)?;
        let mut paged = Session::connect(&self.revision, exit_recorder.place(), &Desk::new()).await?;
        let mut details = Vec::new();
        for (kind, key) in LISTS {
            let mut whole = self.names(kind).await?;
            let (mut seen, mut pages, mut cursor) = (Vec::new(), 0, None);
            while pages == 0 || cursor.is_some() {
                ensure!(pages <= whole.len(), "{kind}: the cursors never end");
                let page = paged.list_page(kind, cursor).await?;
                let items = page[kind].as_array().context("a page without items")?;
                ensure!(items.len() <= 5, "{kind}: a page of {}", items.len());
                seen.extend(strings(items, key));
                cursor = page["nextCursor"].as_str().map(str::to_owned);
                pages += 1;
            }
            let mut followed = strings(&paged.list_all(kind).await?, key);
            details.push(format!("{} {kind} in {pages} pages", seen.len()));
            for list in [&mut seen, &mut whole, &mut followed] {
                list.sort();
            }
            ensure!(seen.windows(2).all(|pair| pair[0] != pair[1]), "{kind}: duplicates in {seen:?}");
            ensure!(seen == whole, "{kind}: paged and unpaged differ: {seen:?}, {whole:?}");
            ensure!(followed == whole, "{kind}: rmcp's own following of the cursors gives {followed:?}");
        }
        paged.close().await?;
        Ok(details.join(", "))
    }

    async fn text(&mut self) -> Detail {
        let message = "scenario: grüße, 世界, \"quotes\"\nand a second line \u{1F600}";
        let result = self.ok("echo", json!({"message": message})).await?;
        has(&text_of(&result), message)?;
        Ok(String::new())
    }

    async fn image(&mut self) -> Detail {
        let result = self.ok("image", json!({})).await?;
        let image = block(&result, "image").context("no image block")?;
        same("mimeType", &image["mimeType"], &json!("image/png"))?;
        Ok(format!("{} bytes", decode(&image["data"], PNG)?))
    }

    async fn audio(&mut self) -> Detail {
        let result = self.ok("audio", json!({})).await?;
        if !self.since("2025-03-26") {
            ensure!(block(&result, "audio").is_none(), "an audio block, which this revision does not have");
            ensure!(!text_of(&result).is_empty(), "nothing in place of the audio");
            return Ok(format!("no audio in this revision, instead: {}", text_of(&result)));
        }
        let audio = block(&result, "audio").context("no audio block")?;
        same("mimeType", &audio["mimeType"], &json!("audio/wav"))?;
        Ok(format!("{} bytes", decode(&audio["data"], b"RIFF")?))
    }

    async fn resource_link(&mut self) -> Detail {
        let result = self.ok("resource_link", json!({})).await?;
        if !self.since("2025-06-18") {
            ensure!(
                block(&result, "resource_link").is_none(),
                "a resource_link block, which this revision does not have"
            );
            has(&result.to_string(), "://")?;
            return Ok(format!("no resource_link in this revision, instead: {}", result["content"]));
        }
        let link = block(&result, "resource_link").context("no resource_link block")?;
        ensure!(link["name"].is_string(), "a link without a name");
        has(&link["uri"].to_string(), "://")?;
        Ok(link["uri"].to_string())
    }

    async fn embedded_resource(&mut self) -> Detail {
        let result = self.ok("embedded_resource", json!({})).await?;
        let resource = &block(&result, "resource").context("no resource block")?["resource"];
        has(&resource["uri"].to_string(), "://")?;
        let content = resource["text"].as_str().or(resource["blob"].as_str()).unwrap_or_default();
        ensure!(!content.is_empty(), "an empty resource");
        Ok(resource["uri"].to_string())
    }

    async fn annotated(&mut self) -> Detail {
        let result = self.ok("annotated", json!({})).await?;
        let annotations: Vec<&Value> =
            blocks(&result).iter().map(|block| &block["annotations"]).filter(|one| one.is_object()).collect();
        ensure!(!annotations.is_empty(), "no annotations in {result}");
        let said = |one: &&Value| one["audience"].is_array() || one["priority"].is_number();
        ensure!(annotations.iter().any(said), "nothing said in {annotations:?}");
        for one in &annotations {
            ensure!((0.0..=1.0).contains(&one["priority"].as_f64().unwrap_or(0.0)), "priority in {one}");
        }
        Ok(json!(annotations).to_string())
    }

    async fn mixed(&mut self) -> Detail {
        let result = self.ok("mixed", json!({})).await?;
        let kinds = strings(blocks(&result), "type");
        let mut different = kinds.clone();
        different.sort();
        different.dedup();
        ensure!(different.len() >= 3, "kinds {kinds:?}");
        has_all(&kinds, &["text", "image"])?;
        Ok(kinds.join(" "))
    }

    async fn structured_output(&mut self) -> Detail {
        let sum = self.ok("sum", json!({"a": 2, "b": 3})).await?;
        has(&text_of(&sum), "5")?;
        let weather = self.ok("get_weather", json!({"location": "Berlin"})).await?;
        has(&text_of(&weather), "\n").context("the weather is not several lines")?;
        same(
            "the same place's weather",
            &self.ok("get_weather", json!({"location": "Berlin"})).await?,
            &weather,
        )?;
        if !self.since("2025-06-18") {
            ensure!(
                sum["structuredContent"].is_null(),
                "structuredContent, which this revision does not have"
            );
            return Ok("no structured output in this revision, the text has it".to_owned());
        }
        let total = sum["structuredContent"]["total"].as_f64();
        ensure!(total == Some(5.0), "structuredContent of sum: {}", sum["structuredContent"]);
        let found = &weather["structuredContent"];
        ensure!(found["temperature"].is_number() && found["humidity"].is_number(), "{found}");
        ensure!(found["conditions"].is_string(), "{found}");
        Ok(found.to_string())
    }

    async fn tool_error(&mut self) -> Detail {
        let result = self.call("fail", json!({"message": "scenario failure"})).await?;
        same("isError", &result["isError"], &json!(true))?;
        has(&text_of(&result), "scenario failure")?;
        Ok(String::new())
    }

    async fn protocol_error(&mut self) -> Detail {
        let error = expect_rpc_error(
            self.call("protocol_error", json!({"message": "scenario protocol error"})).await,
        )?;
        has(&error.to_string(), "scenario protocol error")?;
        // 2026-07-28 keeps these for itself or retired them; none of those it defines means that a tool wants an error
        let code = error["code"].as_i64().context("no code")?;
        let reserved = (-32099..=-32020).contains(&code) || code == -32002;
        ensure!(!(self.modern() && reserved), "code {code} is reserved for the specification");
        Ok(error.to_string())
    }

    async fn invalid_arguments(&mut self) -> Detail {
        let answer = self.call("sum", json!({"a": "two", "b": 3})).await;
        if !self.since("2025-11-25") {
            let error = expect_rpc_error(answer)?;
            same("code", &error["code"], &json!(-32602))?;
            let paths = ["/a", ".a", "$a", "[a", "\"a", "'a", "`a"];
            ensure!(
                paths.iter().any(|path| error.to_string().contains(path)),
                "no path to the argument in {error}"
            );
            return Ok(error.to_string());
        }
        let result = answer?;
        same("isError", &result["isError"], &json!(true))?;
        has(&text_of(&result), "number")?;
        Ok(text_of(&result))
    }

    async fn resources_list(&mut self) -> Detail {
        let resources = self.session()?.list_all("resources").await?;
        has_all(&strings(&resources, "uri"), RESOURCES)?;
        for resource in &resources {
            ensure!(resource["name"].is_string(), "{} has no name", resource["uri"]);
        }
        let todo = item(&resources, "uri", TODO)?;
        ensure!(
            todo["mimeType"].as_str().is_some_and(|kind| kind.starts_with("text/plain")),
            "{}",
            todo["mimeType"]
        );
        ensure!(todo["annotations"].is_object(), "todo.txt has no annotations");
        Ok(format!("{} resources", resources.len()))
    }

    async fn resources_read(&mut self) -> Detail {
        let todo = self.read(TODO).await?;
        same("uri", &todo["uri"], &json!(TODO))?;
        let text = todo["text"].as_str().context("todo.txt has no text")?;
        ensure!(!text.is_empty(), "todo.txt is empty");
        let diagram = self.read("file:///resources/diagram.png").await?;
        same("mimeType", &diagram["mimeType"], &json!("image/png"))?;
        Ok(format!("{} characters, {} bytes", text.chars().count(), decode(&diagram["blob"], PNG)?))
    }

    async fn read(&self, uri: &str) -> Result<Value> {
        Ok(self.session()?.read_resource(uri).await?["contents"][0].clone())
    }

    async fn resource_templates(&mut self) -> Detail {
        let templates = self.names("resourceTemplates").await?;
        has_all(&templates, &["test://template/{id}/data"])?;
        let data = self.read("test://template/123/data").await?;
        same("uri", &data["uri"], &json!("test://template/123/data"))?;
        same("mimeType", &data["mimeType"], &json!("application/json"))?;
        let content: Value = serde_json::from_str(data["text"].as_str().context("no text")?)?;
        ensure!(content["id"].to_string().trim_matches('"') == "123", "id in {content}");
        Ok(format!("{} templates", templates.len()))
    }

    async fn resource_not_found(&mut self) -> Detail {
        let uri = "file:///notes/no-such-file.txt";
        let error = expect_rpc_error(self.session()?.read_resource(uri).await)?;
        same("code", &error["code"], &json!(if self.modern() { -32602 } else { -32002 }))?;
        same("data.uri", &error["data"]["uri"], &json!(uri))?;
        Ok(error.to_string())
    }

    async fn subscribe(&mut self) -> Detail {
        let updated = "notifications/resources/updated";
        let before = self.read(TODO).await?;
        if !self.modern() {
            self.session()?.subscribe(TODO).await?;
        }
        let watch = self.watch(json!({"resourceSubscriptions": [TODO]})).await?;
        self.ok("touch_resource", json!({"uri": TODO})).await?;
        self.desk.next(updated, |params| params["uri"] == TODO).await?;
        ensure!(self.read(TODO).await? != before, "the content did not change");
        drop(watch);
        if !self.modern() {
            self.session()?.unsubscribe(TODO).await?;
        }
        sleep(QUIET).await; // rmcp sends the end of the subscription in its own time
        self.desk.clear();
        self.ok("touch_resource", json!({"uri": TODO})).await?;
        sleep(QUIET).await;
        ensure!(
            self.desk.of(updated).is_empty(),
            "updated without a subscription: {:?}",
            self.desk.of(updated)
        );
        Ok(String::new())
    }

    async fn list_changed(&mut self) -> Detail {
        let filter =
            json!({"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true});
        let _watch = self.watch(filter).await?;
        for (kind, one, key, added) in [
            ("tools", "tool", "name", "scenario_tool"),
            ("prompts", "prompt", "name", "scenario_prompt"),
            ("resources", "resource", "uri", "file:///scenario/added.txt"),
        ] {
            let added = added.to_owned();
            ensure!(!self.names(kind).await?.contains(&added), "{added} was there before");
            for (change, present) in [("add", true), ("remove", false)] {
                self.desk.clear();
                self.ok(&format!("{change}_{one}"), json!({key: added})).await?;
                self.desk.next(&format!("notifications/{kind}/list_changed"), |_| true).await?;
                let listed = self.names(kind).await?.contains(&added);
                ensure!(listed == present, "{added} listed after {change}_{one}: {listed}");
            }
        }
        Ok(String::new())
    }

    async fn prompts_list(&mut self) -> Detail {
        let prompts = self.session()?.list_all("prompts").await?;
        has_all(&strings(&prompts, "name"), PROMPTS)?;
        for prompt in &prompts {
            ensure!(prompt["description"].is_string(), "{} has no description", prompt["name"]);
        }
        let arguments =
            item(&prompts, "name", "code_review")?["arguments"].as_array().context("no arguments")?;
        same("code is required", &item(arguments, "name", "code")?["required"], &json!(true))?;
        ensure!(item(arguments, "name", "language")?["required"] != true, "language is required");
        Ok(format!("{} prompts", prompts.len()))
    }

    async fn prompts_get(&mut self) -> Detail {
        let code = "fn scenario() -> u8 { 42 }";
        let result =
            self.session()?.get_prompt("code_review", json!({"code": code, "language": "rust"})).await?;
        let messages = result["messages"].as_array().context("no messages")?;
        ensure!(!messages.is_empty(), "no messages");
        has(&result["messages"].to_string(), code)?;
        has(&result["messages"].to_string(), "rust")?;
        Ok(format!("{} messages", messages.len()))
    }

    async fn completion(&mut self) -> Detail {
        let session = self.session()?;
        let plain = session.complete("code_review", ("language", "py"), None).await?;
        has(&plain["values"].to_string().to_lowercase(), "python")?;
        ensure!(plain["values"].as_array().is_some_and(|values| values.len() <= 100), "too many values");
        if !self.since("2025-06-18") {
            return Ok(plain["values"].to_string());
        }
        let informed =
            session.complete("code_review", ("language", "py"), Some(("code", "print(1)"))).await?;
        has(&informed["values"].to_string().to_lowercase(), "python").context("with context")?;
        Ok(format!("{}, also with context", plain["values"]))
    }

    async fn logged(&self, level: Option<&str>) -> Result<Vec<String>> {
        self.desk.clear();
        let arguments = json!({"text": "scenario log"});
        succeeded("log_all", self.session()?.call("log_all", arguments, level).await?)?;
        sleep(QUIET).await;
        let messages = self.desk.of("notifications/message");
        let mine =
            messages.into_iter().filter(|message| message["data"].to_string().contains("scenario log"));
        let mut levels = strings(&mine.collect::<Vec<_>>(), "level");
        levels.sort();
        Ok(levels)
    }

    async fn logging(&mut self) -> Detail {
        for (at, level) in [(3, "warning"), (0, "debug")] {
            let found = if self.modern() {
                self.logged(Some(level)).await?
            } else {
                self.session()?.set_level(level).await?;
                self.logged(None).await?
            };
            let mut wanted = LEVELS[at..].to_vec();
            wanted.sort_unstable();
            ensure!(found == wanted, "levels logged at {level}: {found:?}");
        }
        if self.modern() {
            let found = self.logged(None).await?;
            ensure!(found.is_empty(), "logged for a request without logLevel: {found:?}");
        }
        Ok(String::new())
    }

    async fn progress(&mut self) -> Detail {
        self.desk.clear();
        let arguments = json!({"steps": 3, "step_ms": 20});
        let (result, token) = self.session()?.call_with_progress("long_task", arguments).await?;
        succeeded("long_task", result)?;
        sleep(QUIET).await;
        let last = self.desk.traffic().pop().unwrap_or_default();
        ensure!(last.get("method").is_none(), "progress after the result");
        let mut seen = self.desk.of("notifications/progress");
        seen.retain(|params| params["progressToken"] == token);
        let steps: Vec<f64> = seen.iter().filter_map(|params| params["progress"].as_f64()).collect();
        ensure!(steps.len() == 3, "progress {steps:?}");
        ensure!(steps.windows(2).all(|pair| pair[0] < pair[1]), "progress does not grow: {steps:?}");
        let total = seen[2]["total"].as_f64();
        ensure!(total.is_none_or(|total| total == steps[2]), "ended at {} of {total:?}", steps[2]);
        Ok(format!("{steps:?} of {total:?}"))
    }

    async fn cancellation(&mut self) -> Detail {
        let tag = format!("scenario-{}", run_number());
        let arguments = json!({"steps": 100, "step_ms": 100, "tag": tag});
        let begin = Instant::now();
        self.session()?.call_cancelled("long_task", arguments, Duration::from_millis(300)).await?;
        ensure!(
            begin.elapsed() < Duration::from_millis(1300),
            "the call ended only after {:?}",
            begin.elapsed()
        );
        wait_until_stopped(&tag, self.session()?).await?;
        Ok("by RequestHandle::cancel".to_owned())
    }

    async fn sampling(&mut self) -> Detail {
        self.desk.clear();
        let result = self.ok("ask_model", json!({"prompt": "what does the scenario answer?"})).await?;
        let question = self.desk.question()?;
        has(&question["messages"].to_string(), "what does the scenario answer?")?;
        ensure!(
            question["maxTokens"].as_u64().is_some_and(|tokens| tokens > 0),
            "maxTokens {}",
            question["maxTokens"]
        );
        has(&result.to_string(), "the scenario answers 4711")?;
        Ok(String::new())
    }

    /// The SDK's client handlers answer with results alone, so the server must refuse to ask by a task.
    async fn client_tasks(&mut self) -> Detail {
        self.desk.clear();
        let why = if self.since("2025-11-25") && !self.since("2026-07-28") {
            "the SDK runs no tasks for a server"
        } else {
            "no tasks of clients in this revision"
        };
        let result = self.call("ask_model", json!({"prompt": "nothing", "task": true})).await?;
        ensure!(result["isError"] == true, "{why}, yet ask_model gave {result}");
        ensure!(self.desk.question().is_err(), "{why}, yet the server asked");
        Err(Unsupported(format!("{why}: {}", text_of(&result))).into())
    }

    /// Calls `ask_user`. Where the revision has no such question the server must not ask, and the tool must say so.
    async fn ask_user(&self, form: &str, reply: Reply, since: &str) -> Result<Value> {
        *self.desk.reply.lock().unwrap() = reply;
        let answer = self.call("ask_user", json!({"form": form})).await;
        if self.since(since) {
            return answer;
        }
        let why = "no such elicitation in this revision";
        let said = match answer {
            Ok(result) => {
                ensure!(result["isError"] == true, "{why}, yet ask_user gave {result}");
                text_of(&result)
            }
            Err(error) => match rpc_error(&error) {
                Some(found) if [-32600, -32601, -32602].map(Value::from).contains(&found["code"]) => {
                    found.to_string()
                }
                _ => return Err(error),
            },
        };
        let requests = self.desk.server_requests();
        ensure!(requests.is_empty(), "{why}, yet the server asked: {requests:?}");
        ensure!(!said.is_empty(), "{why}: an error that says nothing");
        Err(Unsupported(format!("{why}: {said}")).into())
    }

    async fn elicitation_form(&mut self) -> Detail {
        let result = succeeded("ask_user", self.ask_user("all", Reply::Fill, "2025-06-18").await?)?;
        let question = self.desk.question()?;
        ensure!(matches!(question["mode"].as_str(), None | Some("form")), "mode {}", question["mode"]);
        let fields = form::fields(&question);
        let kinds: Vec<String> = fields.values().map(form::kind).collect();
        has_all(&kinds, &["string", "boolean", "enum"])?;
        ensure!(kinds.iter().any(|kind| kind == "number" || kind == "integer"), "kinds {kinds:?}");
        let multiple = kinds.iter().any(|kind| kind == "array");
        ensure!(multiple == self.since("2025-11-25"), "kinds {kinds:?}");
        let said = result.to_string().replace("\\\"", "\"");
        for value in form::fill(&question).as_object().into_iter().flat_map(|content| content.values()) {
            for one in value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]) {
                has(&said, one.to_string().trim_matches('"'))?;
            }
        }
        Ok(format!("{} fields: {}", fields.len(), kinds.join(" ")))
    }

    async fn elicitation_decline(&mut self) -> Detail {
        let result = self.ask_user("confirm", Reply::Decline, "2025-06-18").await?;
        self.desk.question()?;
        has(&result.to_string().to_lowercase(), "decline")?;
        Ok(String::new())
    }

    async fn elicitation_url(&mut self) -> Detail {
        let answer = self.ask_user("url", Reply::Accept, "2025-11-25").await;
        if let (true, Err(error)) = (self.modern(), &answer)
            && unreadable(error)
        {
            return self.unreadable_url_question(error);
        }
        let result = succeeded("ask_user", answer?)?;
        let question = self.desk.question()?;
        same("mode", &question["mode"], &json!("url"))?;
        ensure!(
            question["url"].as_str().is_some_and(|url| url.starts_with("http")),
            "url {}",
            question["url"]
        );
        has(&result.to_string().to_lowercase(), "accept")?;
        Ok(question["url"].to_string())
    }

    /// rmcp could not read the URL question. It is rmcp's fault only if the question is as the revision has it,
    /// and rmcp would read it with the `elicitationId` that the revision removed.
    fn unreadable_url_question(&self, error: &anyhow::Error) -> Detail {
        let traffic = self.desk.traffic();
        let answer = traffic.iter().find(|message| message["result"]["resultType"] == "input_required");
        let questions = answer.and_then(|message| message["result"]["inputRequests"].as_object());
        let question =
            questions.and_then(|questions| questions.values().next()).context("no question was sent")?;
        same("method", &question["method"], &json!("elicitation/create"))?;
        let mut params = question["params"].clone();
        same("mode", &params["mode"], &json!("url"))?;
        ensure!(params["url"].as_str().is_some_and(|url| url.starts_with("http")), "url {}", params["url"]);
        ensure!(
            params["message"].is_string() && params["elicitationId"].is_null(),
            "the question is {params}"
        );
        let refusal = question_refusal(&params).context("rmcp can read the question")?;
        params["elicitationId"] = json!("scenario");
        ensure!(
            question_refusal(&params).is_none(),
            "rmcp cannot read the question with an elicitationId either"
        );
        Err(Unsupported(format!(
            "rmcp demands an elicitationId, which this revision removed: {error}: {refusal}"
        ))
        .into())
    }

    async fn roots(&mut self) -> Detail {
        *self.desk.roots.lock().unwrap() = vec!["file:///scenario/one", "file:///scenario/two"];
        let first = self.ok("list_roots", json!({})).await?.to_string();
        has(&first, "file:///scenario/one")?;
        has(&first, "file:///scenario/two")?;
        *self.desk.roots.lock().unwrap() = vec!["file:///scenario/three"];
        if !self.modern() {
            self.session()?.roots_changed().await?;
        }
        let second = self.ok("list_roots", json!({})).await?.to_string();
        has(&second, "file:///scenario/three")?;
        ensure!(!second.contains("file:///scenario/one"), "old roots in {second}");
        Ok(if self.modern() {
            "no roots/list_changed in this revision"
        } else {
            "followed roots/list_changed"
        }
        .to_owned())
    }

    async fn concurrent_calls(&mut self) -> Detail {
        let begin = Instant::now();
        let delays: Vec<u64> = (200..250).collect();
        let arguments = delays.iter().map(|ms| json!({"ms": ms})).collect();
        let results = self.session()?.call_all("slow", arguments).await?;
        let took = begin.elapsed();
        for (ms, result) in delays.iter().zip(results) {
            has(&succeeded("slow", result)?.to_string(), &ms.to_string())?;
        }
        let fits = Duration::from_millis(200)..Duration::from_secs(3);
        ensure!(fits.contains(&took), "50 calls took {took:?}");
        Ok(format!("{} ms", took.as_millis()))
    }

    async fn ping(&mut self) -> Detail {
        let answer = self.session()?.ping().await;
        if self.modern() {
            return no_method("ping", answer);
        }
        same("answer", &answer?, &json!({}))?;
        Ok(String::new())
    }

    async fn discover(&mut self) -> Detail {
        let answer = self.session()?.discover().await;
        if !self.modern() {
            return no_method("server/discover", answer);
        }
        let found = answer?;
        has(&found["supportedVersions"].to_string(), NEWEST)?;
        for kind in ["tools", "resources", "prompts"] {
            ensure!(found["capabilities"][kind].is_object(), "no {kind} in {}", found["capabilities"]);
        }
        Ok(format!("supports {}", found["supportedVersions"]))
    }

    async fn resume(&mut self) -> Detail {
        let before = self.exit_recorder.resumptions();
        self.ok("close_stream", json!({})).await?;
        let times = self.exit_recorder.resumptions() - before;
        if self.transport() == "http" && self.revision == "2025-11-25" {
            ensure!(times > 0, "the client did not come back with Last-Event-ID: the stream was not closed");
            return Ok("came back with Last-Event-ID for the result".to_owned());
        }
        let place = match self.transport() {
            "http" => "in this revision".to_owned(),
            transport => format!("over {transport}"),
        };
        let why = format!("no stream is closed before its result {place}");
        ensure!(times == 0, "{why}, yet the client came back with Last-Event-ID");
        Err(Unsupported(format!("{why}: close_stream answered, and nothing had to be resumed")).into())
    }

    async fn clean_exit(&mut self) -> Detail {
        if self.transport() == "http" && self.modern() {
            return self.leave_running().await;
        }
        let begin = Instant::now();
        self.close().await?;
        let ended = self.exit_recorder.clean().await?;
        Ok(format!("{ended} after {} ms", begin.elapsed().as_millis()))
    }

    async fn close(&mut self) -> Result<()> {
        self.session.as_mut().context("no session: the handshake failed")?.close().await
    }

    /// Without a session there is only what runs to be ended: a call that the client leaves stops.
    async fn leave_running(&mut self) -> Detail {
        ensure!(!self.exit_recorder.has_session(), "a session, which this revision does not have");
        let tag = format!("left-{}", run_number());
        let arguments = json!({"steps": 100, "step_ms": 100, "tag": tag});
        let left = self.session()?.call_alone("long_task", arguments);
        sleep(Duration::from_millis(300)).await;
        let begin = Instant::now();
        self.close().await?;
        let exit_recorder = ExitRecorder::new(&self.server, &self.folder, false)?;
        let mut session = Session::connect(&self.revision, exit_recorder.place(), &Desk::new()).await?;
        wait_until_stopped(&tag, &session).await?;
        let took = begin.elapsed().as_millis();
        session.close().await?;
        ensure!(!left.await?, "the call that was left was answered");
        Ok(format!("no session in this revision; the call that was left stopped after {took} ms"))
    }
}

fn same(what: &str, found: &Value, wanted: &Value) -> Result<()> {
    ensure!(found == wanted, "{what}: {found} instead of {wanted}");
    Ok(())
}

fn has(haystack: &str, needle: &str) -> Result<()> {
    let start: String = haystack.chars().take(300).collect();
    ensure!(haystack.contains(needle), "{needle:?} is not in {start}");
    Ok(())
}

fn has_all(found: &[String], wanted: &[&str]) -> Result<()> {
    let missing: Vec<_> = wanted.iter().filter(|item| !found.iter().any(|one| one == *item)).collect();
    ensure!(missing.is_empty(), "missing from the list of {}: {missing:?}", found.len());
    Ok(())
}

/// One member of every item.
fn strings(items: &[Value], key: &str) -> Vec<String> {
    items.iter().filter_map(|item| item[key].as_str().map(str::to_owned)).collect()
}

fn item<'a>(items: &'a [Value], key: &str, value: &str) -> Result<&'a Value> {
    items.iter().find(|item| item[key] == value).ok_or_else(|| anyhow!("no {value}"))
}

fn blocks(result: &Value) -> &[Value] {
    result["content"].as_array().map_or(&[], Vec::as_slice)
}

fn block<'a>(result: &'a Value, kind: &str) -> Option<&'a Value> {
    blocks(result).iter().find(|block| block["type"] == kind)
}

fn text_of(result: &Value) -> String {
    strings(blocks(result), "text").join("\n")
}

fn succeeded(tool: &str, result: Value) -> Result<Value> {
    ensure!(result["isError"] != true, "{tool} failed: {result}");
    Ok(result)
}

fn decode(data: &Value, start: &[u8]) -> Result<usize> {
    let bytes = STANDARD.decode(data.as_str().context("no data")?)?;
    ensure!(bytes.starts_with(start), "the data starts with {:02x?}", &bytes[..bytes.len().min(8)]);
    Ok(bytes.len())
}

/// The JSON-RPC error that the call must end with.
fn expect_rpc_error(answer: Result<Value>) -> Result<Value> {
    match answer {
        Ok(value) => bail!("expected a JSON-RPC error, got {value}"),
        Err(error) => rpc_error(&error).ok_or(error),
    }
}

/// For a method the revision does not have: the server's refusal is the evidence.
fn no_method(method: &str, answer: Result<Value>) -> Detail {
    let error = match answer {
        Ok(value) => bail!("no {method} in this revision, yet it was answered with {value}"),
        Err(error) => error,
    };
    match rpc_error(&error) {
        Some(found) if found["code"] == -32601 => {
            Err(Unsupported(format!("no {method} in this revision: {error}")).into())
        }
        _ => Err(error),
    }
}

/// Waits until the server says that the work with this tag was cancelled and has stopped.
async fn wait_until_stopped(tag: &str, session: &Session) -> Result<()> {
    let begin = Instant::now();
    loop {
        let report = session.call("cancellations", json!({"tag": tag}), None).await?.to_string();
        if report.contains(tag) && stopped(&report) {
            return Ok(());
        }
        ensure!(begin.elapsed() < Duration::from_secs(3), "not cancelled and stopped after 3 s: {report}");
        sleep(Duration::from_millis(100)).await;
    }
}

/// Whether the report says that work stopped, and not that it has not.
fn stopped(report: &str) -> bool {
    let report = report.to_lowercase().replace(['\\', '"', ' '], "");
    let Some((_, after)) = report.split_once("stopped") else { return false };
    let value = after.split([',', '}']).next().unwrap_or_default();
    !value.ends_with(":null") && !value.ends_with(":false")
}
