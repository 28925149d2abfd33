//! What a check does to a server: only tools that only read are called, and nothing stays.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, Method, Response};
use axum::middleware::{Next, from_fn};
use parking_lot::Mutex;
use refmcp_check::{Checker, Options, Target};
use refmcp_client::child::ChildProcess;
use refmcp_http::Endpoint;
use refmcp_proto::revision::Revision;
use refmcp_server::Server;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::altered::{Asked, Change, Reply};
use crate::servers::{http, reference};

static CALLED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// The names of listed tools that do not say that they only read.
static NOT_READ_ONLY: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

fn note_call(asked: &Asked) -> Option<Reply> {
    if asked.method() == "tools/call"
        && let Some(name) = asked.message["params"]["name"].as_str()
    {
        CALLED.lock().insert(name.to_owned());
    }
    None
}

/// A tool that says nothing of itself, some that say that they do more than to read, and two that say different things.
fn with_tools(asked: &Asked, reply: &mut Reply) {
    if asked.method() != "tools/list" {
        return;
    }
    let tool = |name: &str, annotations: Value| json!({ "name": name, "inputSchema": { "type": "object" }, "annotations": annotations });
    let tools = [
        tool("reads", json!({ "readOnlyHint": true })),
        tool("says-nothing", json!({})),
        tool("writes", json!({ "readOnlyHint": false })),
        tool("a-text", json!({ "readOnlyHint": "true" })),
        tool("idempotent", json!({ "idempotentHint": true, "destructiveHint": false })),
        tool("twice", json!({ "readOnlyHint": true })),
        tool("twice", json!({})),
    ];
    reply.edit(|message| {
        if let Some(known) = message["result"]["tools"].as_array_mut() {
            // Only so many are called.
            known.splice(0..0, tools);
            let reads = |tool: &&Value| tool["annotations"]["readOnlyHint"] == true;
            let others = known.iter().filter(|tool| !reads(tool)).filter_map(|tool| tool["name"].as_str());
            NOT_READ_ONLY.lock().extend(others.map(str::to_owned));
        }
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_tool_is_called_that_does_not_say_that_it_only_reads() {
    for allow_destructive in [false, true] {
        CALLED.lock().clear();
        let mut options = Options::default();
        options.allow_destructive = allow_destructive;
        options.revisions = vec![Revision::LATEST_SESSION, Revision::LATEST];
        options.probes = refmcp_check::probe_names().map(str::to_owned).collect();
        let change = Change { instead: note_call, after: with_tools };
        let report = Checker::new(change.pipe(), options).run(|_| {}).await;
        assert!(report.is_verified(), "{report:#?}");
        let called = CALLED.lock().clone();
        assert!(called.contains("reads"), "{called:?}");
        for name in ["says-nothing", "writes", "a-text", "idempotent", "twice"] {
            assert_eq!(called.contains(name), allow_destructive, "{name}: {called:?}");
        }
        let others = NOT_READ_ONLY.lock().clone();
        assert!(others.contains("add_tool"), "our own tools are among them: {others:?}");
        assert_eq!(called.is_disjoint(&others), !allow_destructive, "{called:?}");
    }
}

/// What happened to the sessions of a server.
#[derive(Debug, Default)]
struct Sessions {
    opened: BTreeSet<String>,
    ended: BTreeSet<String>,
}

type Answer = fn(&Method, &HeaderMap) -> bool;

/// Checks a server over HTTP that never answers these requests; what becomes of its sessions.
async fn sessions(server: Server, options: Options, is_silent: Answer) -> Sessions {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let seen: Arc<Mutex<Sessions>> = Arc::default();
    let layer = from_fn({
        let seen = seen.clone();
        move |request: Request, next: Next| {
            let seen = seen.clone();
            async move {
                let (method, headers) = (request.method().clone(), request.headers().clone());
                if is_silent(&method, &headers) {
                    std::future::pending::<()>().await;
                }
                let response: Response<Body> = next.run(request).await;
                let id = |headers: &HeaderMap| Some(headers.get("mcp-session-id")?.to_str().ok()?.to_owned());
                if method == Method::DELETE && response.status().is_success() {
                    seen.lock().ended.extend(id(&headers));
                } else if !headers.contains_key("mcp-session-id") {
                    seen.lock().opened.extend(id(response.headers()));
                }
                response
            }
        }
    });
    let router = Endpoint::builder(server).build().router().layer(layer);
    tokio::spawn(async move { axum::serve(listener, router).await });
    let report = Checker::new(http(address), options).run(|_| {}).await;
    assert!(report.is_verified(), "{report:#?}");
    std::mem::take(&mut *seen.lock())
}

fn assert_all_ended(sessions: &Sessions) {
    assert!(!sessions.opened.is_empty());
    assert_eq!(sessions.opened, sessions.ended);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_session_is_ended_with_delete() {
    assert_all_ended(&sessions(reference(), Options::default(), |_, _| false).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_of_another_revision_than_requested_are_ended_too() {
    let old = Revision::V2025_06_18;
    let server = Server::builder("old", "1").revisions([old]).build().unwrap();
    assert_all_ended(&sessions(server, Options::default(), |_, _| false).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_of_probes_whose_time_is_over_are_ended_too() {
    let mut options = Options::default();
    options.revisions = vec![Revision::LATEST_SESSION];
    (options.timeout, options.start_timeout) = (Duration::from_millis(100), Duration::from_millis(200));
    // Only a request that opens no session yet is answered: each probe waits until its time is over.
    let sessions = sessions(reference(), options, |method, headers| {
        *method == Method::POST && headers.get("origin").is_none() && {
            static ANSWERED: Mutex<u32> = Mutex::new(0);
            let mut answered = ANSWERED.lock();
            *answered += 1;
            *answered > 40
        }
    });
    assert_all_ended(&sessions.await);
}

/// A server without tools that writes its number to a file, and goes on when its input has ended.
fn script(pids: &Path) -> String {
    let answer = json!({ "supportedVersions": [Revision::LATEST.as_str()], "capabilities": {}, "resultType": "complete" });
    let line = format!(r#"{{"jsonrpc":"2.0","id":'"$id"',"result":{answer}}}"#);
    let id = r#"id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')"#;
    format!("echo $$ >> {}; while read -r line; do {id}; echo '{line}'; done; exec sleep 300", pids.display())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_process_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    let child = ChildProcess::new("sh").args(["-c", &script(&pids)]);
    let mut options = Options::default();
    options.revisions = vec![Revision::LATEST];
    options.timeout = Duration::from_secs(1);
    let report = Checker::new(Target::child(child), options).run(|_| {}).await;
    assert!(report.is_verified(), "{report:#?}");
    let pids = tokio::fs::read_to_string(&pids).await.unwrap();
    assert!(pids.lines().count() > 2, "{pids}");
    for pid in pids.lines() {
        let state = tokio::fs::read_to_string(format!("/proc/{pid}/stat")).await.unwrap_or_default();
        let is_gone = state.is_empty() || state.contains(") Z ");
        assert!(is_gone, "process {pid} is left: {state}");
    }
}
