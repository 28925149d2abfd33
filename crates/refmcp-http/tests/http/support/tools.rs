//! The server of the tests, and its tools.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use refmcp_server::model::{LogLevel, ResourceContents};
use refmcp_server::transport::observer::Observer;
use refmcp_server::{Call, CallError, NoArguments, Resource, Server, ServerBuilder, ServerRequest, Tool};
use refmcp_testkit::audit::{Role, TestAudit};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::sleep;

#[derive(Deserialize, JsonSchema)]
struct Echo {
    message: String,
}

#[derive(Deserialize, JsonSchema)]
struct Steps {
    n: u32,
    ms: u64,
    /// Said with every step.
    #[serde(default)]
    note: String,
}

#[derive(Deserialize, JsonSchema)]
struct Slow {
    ms: u64,
}

#[derive(Deserialize, JsonSchema)]
struct Mirror {
    region: Option<String>,
    size: Option<i64>,
}

#[derive(Deserialize, JsonSchema)]
struct Whisper {
    secret: String,
}

#[derive(Deserialize, JsonSchema)]
struct ApiKey {
    /// How long it waits before it reads the header.
    #[serde(default)]
    ms: u64,
    /// Whether it asks the client before.
    #[serde(default)]
    ask: bool,
}

/// Counts handlers that have ended, whether they were done or dropped.
struct Ends(Arc<AtomicUsize>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// What a test sees of its server.
pub(crate) struct Watch {
    /// How many `slow` and `steps` calls have ended.
    pub(crate) ended: Arc<AtomicUsize>,
    /// Fails the test when it is dropped, if the server broke a rule.
    _audit: TestAudit,
}

/// A server, and what the test sees of it.
pub(crate) fn server() -> (Server, Watch) {
    server_with(|builder| builder)
}

/// The same without an audit: where a server sees a part of what passes, or all memory is counted.
pub(crate) fn unaudited(configure: impl FnOnce(ServerBuilder) -> ServerBuilder) -> (Server, Watch) {
    let nothing: Vec<Arc<dyn Observer>> = Vec::new();
    server_with(|builder| configure(builder.observer(Arc::new(nothing))))
}

pub(crate) fn server_with(configure: impl FnOnce(ServerBuilder) -> ServerBuilder) -> (Server, Watch) {
    let (ended, audit) = (Arc::new(AtomicUsize::new(0)), TestAudit::of(Role::Server));
    let (of_steps, of_slow) = (ended.clone(), ended.clone());
    let echo = Tool::new("echo", "Says it again", |_: Call, Echo { message }| async move { Ok(message) });
    let steps = Tool::new("steps", "Takes steps", move |call: Call, Steps { n, ms, note }| {
        let ends = Ends(of_steps.clone());
        async move {
            let _ends = ends;
            for step in 1..=n {
                if ms > 0 {
                    sleep(Duration::from_millis(ms)).await;
                }
                call.progress(f64::from(step), Some(f64::from(n)), note.clone()).await;
            }
            Ok(format!("{n} steps {note}"))
        }
    });
    let slow = Tool::new("slow", "Takes its time", move |_: Call, Slow { ms }| {
        let ends = Ends(of_slow.clone());
        async move {
            let _ends = ends;
            sleep(Duration::from_millis(ms)).await;
            Ok("slow")
        }
    });
    let ask = Tool::new("ask", "Asks", |call: Call, _: NoArguments| async move {
        let sure = call.confirm("sure", "Sure?")?;
        Ok(format!("sure: {sure}"))
    });
    let ask_by_task = Tool::new("ask_by_task", "Asks by a task", |call: Call, _: NoArguments| async move {
        let sure = call.request("sure", ServerRequest::confirm("Sure?").as_task(None))?;
        Ok(format!("sure: {sure}"))
    });
    let whisper =
        Tool::new("whisper", "Says a secret in every way", |call: Call, Whisper { secret }| async move {
            call.log(LogLevel::Error, "whisper", secret.clone()).await;
            call.progress(f64::from(call.round() + 1), None, secret.clone()).await;
            let sure = call.confirm("sure", secret.clone())?;
            Ok(format!("{sure} {secret}"))
        });
    let near =
        Tool::new("near", "Whether the client is on this machine", |call: Call, _: NoArguments| async move {
            Ok(call.connection().local.to_string())
        });
    let whoami = Tool::new("whoami", "Who the client is", |call: Call, _: NoArguments| async move {
        Ok(call.principal().unwrap_or("none").to_owned())
    });
    let api_key = Tool::new("api_key", "The header X-Api-Key", |call: Call, ApiKey { ms, ask }| async move {
        if ms > 0 {
            sleep(Duration::from_millis(ms)).await;
        }
        if ask {
            call.confirm("sure", "Sure?")?;
        }
        let headers = call.connection().headers.read();
        let mut keys = headers.iter().filter(|(name, _)| name == "x-api-key").map(|(_, value)| &**value);
        Ok(keys.next().unwrap_or("none").to_owned())
    });
    let dear = Tool::new("dear", "Takes two scopes", |_: Call, _: NoArguments| async move { Ok("dear") });
    let dearer = Tool::new("dearer", "Takes another", |_: Call, _: NoArguments| async move { Ok("dearer") });
    let grow = Tool::new("grow", "Adds a tool to the session", |call: Call, _: NoArguments| async move {
        let own = Tool::new("own", "The session's own", |_: Call, _: NoArguments| async move { Ok("own") });
        let session = call.session().ok_or_else(|| CallError::new("no session"))?;
        session.change_lists(|lists| lists.add_tool(own.scopes(["own"]))).await?;
        let cheap = Tool::new("dear", "In disguise", |_: Call, _: NoArguments| async move { Ok("cheap") });
        session.change_lists(|lists| lists.add_tool(cheap)).await?;
        Ok("grown")
    });
    let leave = Tool::new("leave", "Sends the client away", |call: Call, _: NoArguments| async move {
        call.close_stream();
        sleep(Duration::from_millis(100)).await;
        Ok("came back")
    });
    let mirror =
        Tool::new("mirror", "Has arguments in headers", |_: Call, Mirror { region, size }| async move {
            Ok(format!("{region:?} {size:?}"))
        });
    let schema = json!({ "type": "object", "properties": {
        "region": { "type": "string", "x-mcp-header": "Region" },
        "size": { "type": "integer", "x-mcp-header": "Size" },
    } });
    let Value::Object(schema) = schema else { unreachable!() };
    let note =
        Resource::new("note:///a", "a", |_: Call| async { Ok(ResourceContents::text("note:///a", "text")) });
    let server = Server::builder("test", "1")
        .seal_key([1; 32])
        .tool(echo.inline())
        .tool(steps)
        .tool(slow)
        .tool(ask)
        .tool(ask_by_task)
        .tool(whisper)
        .tool(near)
        .tool(leave)
        .tool(whoami)
        .tool(api_key)
        .tool(grow)
        .tool(dear.scopes(["dear:read", "dear:write"]))
        .tool(dearer.scopes(["dearer"]))
        .tool(mirror.input_schema(schema))
        .resource(note);
    (configure(server.observer(audit.observer())).build().unwrap(), Watch { ended, _audit: audit })
}
