//! A service whose calls do what their arguments say, a driver around it, and the peer's end of the pipe.

use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use refmcp_proto::engine::{
    Dispatch, HandlerOutcome, InputOutcome, KeyedInputRequest, LogMessage, Progress, ServerEngine,
};
use refmcp_proto::model::{CallToolResult, InputRequest, LogLevel};
use refmcp_testkit::engine::full_config;
use refmcp_testkit::messages::initialize_params;
use refmcp_transport::changes::ChangeSender;
use refmcp_transport::pipe::{LineReader, LineWriter};
use refmcp_transport::{
    CallService, ConnectionEnd, Driver, DriverOptions, EngineHandle, MemoryBudget, RunningCall,
};
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf, duplex, split,
};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Runs calls by the name of their tool.
#[derive(Debug, Default)]
pub(crate) struct Script {
    /// Lets the calls of `wait` go on, one for each permit.
    pub(crate) gate: Arc<Gate>,
}

/// What is known about calls that wait.
#[derive(Debug)]
pub(crate) struct Gate {
    pub(crate) open: Semaphore,
    pub(crate) begun: AtomicUsize,
    pub(crate) dropped: AtomicUsize,
}

impl Default for Gate {
    fn default() -> Self {
        Self { open: Semaphore::new(0), begun: AtomicUsize::new(0), dropped: AtomicUsize::new(0) }
    }
}

struct Leaving(Arc<Gate>);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

impl CallService for Script {
    type Work = Pin<Box<dyn Future<Output = HandlerOutcome> + Send>>;

    fn start(&self, call: Dispatch, handle: &EngineHandle) -> RunningCall<Self::Work> {
        let params: Value = serde_json::from_str(&call.params).unwrap();
        let inline = params["name"] == "text" || params["arguments"]["inline"] == true;
        let work: Self::Work = Box::pin(run(call, params, handle.clone(), self.gate.clone()));
        RunningCall { inline, work }
    }
}

async fn run(call: Dispatch, params: Value, handle: EngineHandle, gate: Arc<Gate>) -> HandlerOutcome {
    let arguments = &params["arguments"];
    let number = |name: &str| usize::try_from(arguments[name].as_u64().unwrap_or(0)).unwrap();
    let text = match params["name"].as_str().unwrap() {
        "text" => "x".repeat(number("bytes")),
        "task" => {
            tokio::task::yield_now().await;
            "x".repeat(number("bytes"))
        }
        "steps" => {
            for step in 1..=u32::try_from(number("count")).unwrap() {
                let progress = Progress { progress: f64::from(step), total: None, message: None };
                handle.progress(call.call, progress).await;
                tokio::task::yield_now().await;
            }
            "walked".to_owned()
        }
        "shout" => {
            let _leaving = Leaving(gate.clone());
            let data = json!("x".repeat(number("bytes")));
            loop {
                let note = LogMessage { level: LogLevel::Error, logger: None, data: data.clone() };
                handle.log(Some(call.call), note).await;
                gate.begun.fetch_add(1, Ordering::SeqCst);
            }
        }
        "wait" => {
            gate.begun.fetch_add(1, Ordering::SeqCst);
            let _leaving = Leaving(gate.clone());
            gate.open.acquire().await.unwrap().forget();
            format!("waited{}", "x".repeat(number("bytes")))
        }
        "spin" => {
            gate.begun.fetch_add(1, Ordering::SeqCst);
            while gate.open.available_permits() == 0 {
                std::hint::spin_loop();
            }
            "spun".to_owned()
        }
        "ask" => match call.replay.responses.get("roots") {
            Some(InputOutcome::Response(roots)) => roots.to_string(),
            Some(other) => format!("{other:?}"),
            None => {
                let question = KeyedInputRequest { key: "roots".to_owned(), request: InputRequest::Roots };
                return HandlerOutcome::InputRequired {
                    requests: vec![question],
                    used: None,
                    once: BTreeMap::new(),
                };
            }
        },
        other => panic!("no script for {other}"),
    };
    HandlerOutcome::Done(Box::new(CallToolResult::text(text).into()))
}

/// The peer of a driver.
pub(crate) struct Peer {
    pub(crate) input: WriteHalf<DuplexStream>,
    pub(crate) output: BufReader<ReadHalf<DuplexStream>>,
    pub(crate) stop: CancellationToken,
    pub(crate) gate: Arc<Gate>,
    pub(crate) hub: ChangeSender,
    pub(crate) driven: JoinHandle<io::Result<ConnectionEnd>>,
    pub(crate) handle: EngineHandle,
    pub(crate) memory: MemoryBudget,
}

impl Peer {
    /// A driver at the end of a pipe that holds so many bytes; it waits ten seconds for calls when it ends.
    pub(crate) async fn of_width(width: usize) -> Self {
        Self::with(width, None).await
    }

    pub(crate) async fn with(width: usize, handlers: Option<Handle>) -> Self {
        Self::with_memory(width, handlers, &MemoryBudget::default()).await
    }

    pub(crate) async fn with_memory(width: usize, handlers: Option<Handle>, memory: &MemoryBudget) -> Self {
        let (near, far) = duplex(width);
        let (read, write) = split(near);
        let engine = ServerEngine::new(Arc::new(full_config()), None);
        let (script, hub) = (Script::default(), ChangeSender::default());
        let gate = script.gate.clone();
        let pipe = (LineReader::new(read, 1 << 20), LineWriter::new(write));
        let (feed, grace) = (Some(hub.subscribe()), Duration::from_secs(10));
        let account = memory.account();
        let memory = memory.clone();
        let options = DriverOptions { feed, grace, handlers, memory: account, ..DriverOptions::default() };
        let driver = Driver::new(pipe, engine, script, options);
        let (handle, stop) = (driver.handle(), CancellationToken::new());
        let driven = tokio::spawn(driver.run(stop.clone()));
        let (output, input) = split(far);
        let mut peer =
            Self { input, output: BufReader::new(output), stop, gate, hub, driven, handle, memory };
        peer.open().await;
        peer
    }

    async fn open(&mut self) {
        let params = initialize_params("peer", "2025-11-25", json!({ "roots": {} }));
        self.send(&json!({ "id": "open", "method": "initialize", "params": params })).await;
        assert_eq!(self.read().await.unwrap()["id"], "open");
        self.send(&json!({ "method": "notifications/initialized" })).await;
    }

    pub(crate) async fn send(&mut self, message: &Value) {
        self.input.write_all(line(message).as_bytes()).await.unwrap();
    }

    pub(crate) async fn call(&mut self, id: usize, tool: &str, arguments: Value) {
        self.send(&call(id, tool, &arguments)).await;
    }

    /// The next message, or nothing when the driver has closed the pipe.
    pub(crate) async fn read(&mut self) -> Option<Value> {
        let mut text = String::new();
        let count = self.output.read_line(&mut text).await.unwrap();
        (count > 0).then(|| serde_json::from_str(&text).unwrap())
    }

    /// The messages that come until everything is answered that was sent before.
    pub(crate) async fn catch_up(&mut self) -> Vec<Value> {
        self.send(&json!({ "id": "pulse", "method": "ping" })).await;
        let mut before = Vec::new();
        loop {
            let message = self.read().await.unwrap();
            if message["id"] == "pulse" {
                return before;
            }
            before.push(message);
        }
    }
}

pub(crate) fn call(id: usize, tool: &str, arguments: &Value) -> Value {
    let meta = json!({ "progressToken": id });
    json!({ "id": id, "method": "tools/call", "params": { "name": tool, "arguments": arguments, "_meta": meta } })
}

/// A message as a line of its own.
pub(crate) fn line(message: &Value) -> String {
    let mut message = message.clone();
    message["jsonrpc"] = json!("2.0");
    format!("{message}\n")
}

/// Waits until all other tasks are idle; needs a paused clock.
pub(crate) async fn idle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}
