//! Tasks at two endpoints on one backplane: what one of them began can be asked for, answered and cancelled at the other.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use refmcp_http::{Options, ResourceServer};
use refmcp_server::backplane::MemoryBackplane;
use refmcp_server::model::TaskSupport;
use refmcp_server::{Call, CallError, NoArguments, Tool};
use refmcp_testkit::paused::{PausedTime, real_pause};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use url::Url;

use crate::authorization::fake_issuers::{ISSUER, Issuers};
use crate::replicas::{SOON, accept, next_event};
use crate::support::faulty_backplane::FaultyBackplane;
use crate::support::http1::Reply;
use crate::support::{LATEST_SESSION, STATELESS, Site, initialize_params, request, text_of, tools};

const TASKS: &str = "io.modelcontextprotocol/tasks";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const RELATED: &str = "io.modelcontextprotocol/related-task";
const BOTH: [&str; 2] = [LATEST_SESSION, STATELESS];

/// What an endpoint does with the backplane while it runs a task.
const UNPLUGGED: [&str; 5] = ["task", "task_call", "task_changed", "update_task", "renew_replica"];
/// After this time an endpoint that says nothing is taken for gone.
const GONE: Duration = Duration::from_secs(26);

/// Counts handlers that have ended, whether they were done or dropped.
struct Ends(Arc<AtomicUsize>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Two endpoints that want tokens.
struct Sites {
    sites: [Site; 2],
    /// What may go wrong between each endpoint and the backplane.
    faults: [Arc<FaultyBackplane>; 2],
    issuers: Arc<Issuers>,
    /// Lets the handlers of `gate` go on.
    gate: Arc<Semaphore>,
    /// How many handlers of `gate` have ended.
    ended: Arc<AtomicUsize>,
}

impl Sites {
    async fn open() -> Self {
        let backplane = Arc::new(MemoryBackplane::default());
        let faults = [(); 2].map(|()| FaultyBackplane::new(backplane.clone()));
        let (issuers, gate) = (Arc::new(Issuers::default()), Arc::new(Semaphore::new(0)));
        let ended = Arc::<AtomicUsize>::default();
        let open = |number: usize| {
            let (gate, ended, fetch) = (gate.clone(), ended.clone(), issuers.clone());
            let gate = Tool::new("gate", "Waits", move |call: Call, _: NoArguments| {
                let (gate, ended) = (gate.clone(), ended.clone());
                async move {
                    let _ends = Ends(ended);
                    call.progress(1.0, None, "at the gate").await;
                    gate.acquire().await?.forget();
                    Ok::<_, CallError>(format!("through at {number}"))
                }
            });
            let interview = Tool::new("interview", "Asks", move |call: Call, _: NoArguments| async move {
                let (one, other) = (call.confirm("one", "One?"), call.confirm("other", "Other?"));
                let answers = format!("{} {}", one?, other?);
                Ok(format!("{answers} at {number}"))
            });
            let server = tools::unaudited(|builder| {
                builder.tool(gate.task(TaskSupport::Optional)).tool(interview.task(TaskSupport::Optional))
            });
            Site::replica_of(server, faults[number].clone(), move |address| {
                let resource = Url::parse(&format!("http://{address}/mcp")).unwrap();
                let resource_server = ResourceServer::new(resource, ISSUER, fetch);
                Options { resource_server: Some(resource_server), ..Options::default() }
            })
        };
        let sites = [open(0).await, open(1).await];
        Self { sites, faults, issuers, gate, ended }
    }

    /// The `Authorization` header of this user at a site.
    fn bearer(&self, number: usize, user: &str) -> String {
        let resource = format!("http://{}/mcp", self.sites[number].address);
        format!("Bearer {}", self.issuers.token(&resource, json!({ "sub": user })))
    }

    /// Takes the backplane away from the first endpoint, as if its process were gone.
    fn unplug(&self) {
        for method in UNPLUGGED {
            self.faults[0].hold(method);
        }
    }

    fn plug_in(&self) {
        for method in UNPLUGGED {
            self.faults[0].release(method);
        }
    }

    /// Waits until so many handlers of `gate` have ended.
    async fn until_ended(&self, count: usize) {
        for _ in 0..5000 {
            if self.ended.load(Ordering::SeqCst) >= count {
                return;
            }
            real_pause().await;
        }
        panic!("{} of {count} handlers have ended", self.ended.load(Ordering::SeqCst));
    }
}

/// A user with a client of one of the revisions with tasks. One with sessions has one that both endpoints know.
struct User<'a> {
    sites: &'a Sites,
    name: &'static str,
    session: Option<String>,
    /// How many requests it has sent in the session.
    requests: Cell<u64>,
}

impl<'a> User<'a> {
    async fn open(sites: &'a Sites, name: &'static str, revision: &str) -> Self {
        let mut user = Self { sites, name, session: None, requests: Cell::new(0) };
        if revision == LATEST_SESSION {
            user.begin_session().await;
        }
        user
    }

    async fn begin_session(&mut self) {
        let bearer = self.sites.bearer(0, self.name);
        let body = request("initialize", initialize_params(LATEST_SESSION));
        let reply = self.sites.sites[0].post(&[("Authorization", &bearer)], &body).await;
        self.session = Some(reply.header("mcp-session-id").unwrap().to_owned());
        let told = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(self.post(0, &told).await.status, 202);
    }

    fn revision(&self) -> &'static str {
        if self.session.is_some() { LATEST_SESSION } else { STATELESS }
    }

    /// Posts to a site in the session.
    async fn post(&self, number: usize, body: &Value) -> Reply {
        let bearer = self.sites.bearer(number, self.name);
        let mut headers = vec![("Authorization", &*bearer), ("MCP-Protocol-Version", LATEST_SESSION)];
        headers.extend(self.session.as_deref().map(|session| ("Mcp-Session-Id", session)));
        self.sites.sites[number].post(&headers, body).await
    }

    /// Sends a request to a site.
    async fn send(&self, number: usize, method: &str, mut params: Value) -> Reply {
        if self.session.is_some() {
            let mut body = request(method, params);
            self.requests.set(self.requests.get() + 1);
            body["id"] = json!(self.requests.get());
            return self.post(number, &body).await;
        }
        let bearer = self.sites.bearer(number, self.name);
        params["_meta"] = json!({ CAPABILITIES: { "elicitation": {}, "extensions": { TASKS: {} } } });
        self.sites.sites[number].stateless(method, params, &[("Authorization", &bearer)]).await
    }

    async fn result(&self, number: usize, method: &str, params: Value) -> Value {
        let answer = self.send(number, method, params).await.answer().await;
        answer.get("result").unwrap_or_else(|| panic!("{method}: {answer}")).clone()
    }

    /// Calls a tool as a task at a site; gives parameters that name the task.
    async fn create(&self, number: usize, tool: &str) -> Value {
        let mut params = json!({ "name": tool, "arguments": {} });
        if self.session.is_none() {
            let task = self.result(number, "tools/call", params).await;
            assert_eq!(task["resultType"], "task");
            return json!({ "taskId": task["taskId"] });
        }
        params["task"] = json!({});
        let task = self.result(number, "tools/call", params).await["task"].take();
        json!({ "taskId": task["taskId"] })
    }

    /// Asks a site for a task until it has this status.
    async fn until(&self, number: usize, id: &Value, status: &str) -> Value {
        let mut task = Value::Null;
        for _ in 0..2000 {
            task = self.result(number, "tasks/get", id.clone()).await;
            if task["status"] == status {
                return task;
            }
            real_pause().await;
        }
        panic!("it does not become {status}: {task}");
    }

    /// What a task came to, from a site.
    async fn outcome(&self, number: usize, id: &Value) -> Value {
        if self.session.is_some() {
            let outcome = self.result(number, "tasks/result", id.clone()).await;
            assert_eq!(outcome["_meta"][RELATED], *id);
            return outcome;
        }
        self.until(number, id, "completed").await["result"].take()
    }
}

/// The text of a result.
fn text(result: &Value) -> String {
    text_of(&json!({ "result": result })).to_owned()
}

#[tokio::test]
async fn a_task_is_known_at_every_endpoint() {
    let sites = Sites::open().await;
    for revision in BOTH {
        let ann = User::open(&sites, "ann", revision).await;
        let id = ann.create(0, "gate").await;
        for _ in 0..2000 {
            if ann.result(1, "tasks/get", id.clone()).await["statusMessage"] == "at the gate" {
                break;
            }
            real_pause().await;
        }
        let working = ann.result(1, "tasks/get", id.clone()).await;
        assert_eq!(
            (&working["status"], &working["statusMessage"]),
            (&json!("working"), &json!("at the gate"))
        );
        if ann.revision() == LATEST_SESSION {
            for number in 0..2 {
                let listed = ann.result(number, "tasks/list", json!({})).await["tasks"].take();
                assert_eq!((&listed[0]["taskId"], listed[1].is_null()), (&id["taskId"], true), "{listed}");
            }
        }
        sites.gate.add_permits(1);
        for number in [1, 0] {
            assert_eq!(text(&ann.outcome(number, &id).await), "through at 0", "{revision}");
        }
    }
}

#[tokio::test]
async fn a_result_that_is_waited_for_comes_from_the_other_endpoint() {
    let sites = Sites::open().await;
    let ann = User::open(&sites, "ann", LATEST_SESSION).await;
    let id = ann.create(0, "gate").await;
    let waiting = ann.send(1, "tasks/result", id.clone());
    let through = async {
        real_pause().await;
        sites.gate.add_permits(1);
    };
    let (reply, ()) = tokio::join!(timeout(SOON, waiting), through);
    assert_eq!(text_of(&reply.unwrap().answer().await), "through at 0");
}

#[tokio::test]
async fn a_task_is_cancelled_at_the_other_endpoint() {
    let sites = Sites::open().await;
    for (count, revision) in BOTH.into_iter().enumerate() {
        let ann = User::open(&sites, "ann", revision).await;
        let id = ann.create(0, "gate").await;
        ann.until(1, &id, "working").await;
        let acknowledged = ann.result(1, "tasks/cancel", id.clone()).await;
        assert_eq!(acknowledged["status"] == "cancelled", revision == LATEST_SESSION, "{acknowledged}");
        sites.until_ended(count + 1).await;
        sites.gate.add_permits(1);
        for number in 0..2 {
            assert_eq!(ann.result(number, "tasks/get", id.clone()).await["status"], "cancelled");
        }
        sites.gate.acquire().await.unwrap().forget();
    }
}

#[tokio::test]
async fn a_task_is_answered_at_the_other_endpoint() {
    let sites = Sites::open().await;
    let ann = User::open(&sites, "ann", STATELESS).await;
    let id = ann.create(0, "interview").await;
    let asking = ann.until(1, &id, "input_required").await;
    assert_eq!(asking["inputRequests"].as_object().unwrap().len(), 2);
    for (number, key, answer) in [(1, "one", "accept"), (0, "other", "decline")] {
        let mut update = id.clone();
        update["inputResponses"] = json!({ key: { "action": answer, "content": { "confirm": true } } });
        if answer == "decline" {
            update["inputResponses"][key]["content"].take();
        }
        ann.result(number, "tasks/update", update).await;
    }
    // It goes on where its last input came in.
    assert_eq!(text(&ann.outcome(1, &id).await), "true false at 0");
}

#[tokio::test]
async fn a_task_of_a_session_asks_at_the_other_endpoint() {
    let sites = Sites::open().await;
    let ann = User::open(&sites, "ann", LATEST_SESSION).await;
    let id = ann.create(0, "interview").await;
    ann.until(1, &id, "input_required").await;
    let mut stream = ann.send(1, "tasks/result", id.clone()).await;
    for number in 0..2 {
        let question = timeout(SOON, next_event(&mut stream)).await.unwrap();
        assert_eq!(question["params"]["_meta"][RELATED], id);
        // One response goes to the endpoint that asks, and one to the other.
        assert_eq!(ann.post(number, &accept(&question)).await.status, 202);
    }
    let answer = timeout(SOON, stream.events()).await.unwrap().pop().unwrap().1;
    assert_eq!(text_of(&answer), "true true at 1");
}

#[tokio::test]
async fn a_task_outlives_connection_and_session() {
    let sites = Sites::open().await;
    let mut ann = User::open(&sites, "ann", LATEST_SESSION).await;
    let id = ann.create(0, "gate").await;
    // A connection that waits for the result breaks, and the session ends.
    let waiting = ann.send(0, "tasks/result", id.clone()).await;
    drop(waiting);
    let bearer = sites.bearer(1, "ann");
    let session = ann.session.take().unwrap();
    let version = ("MCP-Protocol-Version", LATEST_SESSION);
    let headers = [("Authorization", &*bearer), ("Mcp-Session-Id", &session), version];
    assert_eq!(sites.sites[1].send("DELETE", "/mcp", &headers, b"").await.status, 204);
    ann.begin_session().await;
    assert_eq!(ann.result(1, "tasks/get", id.clone()).await["status"], "working");
    sites.gate.add_permits(1);
    assert_eq!(text(&ann.outcome(1, &id).await), "through at 0");
}

#[tokio::test]
async fn a_task_of_another_principal_is_unknown_at_every_endpoint() {
    let sites = Sites::open().await;
    for revision in BOTH {
        let ann = User::open(&sites, "ann", revision).await;
        let eve = User::open(&sites, "eve", revision).await;
        let id = ann.create(0, "gate").await;
        let absent = json!({ "taskId": "x".repeat(id["taskId"].as_str().unwrap().len()) });
        let methods = match revision {
            LATEST_SESSION => ["tasks/get", "tasks/cancel", "tasks/result"],
            _ => ["tasks/get", "tasks/cancel", "tasks/update"],
        };
        for (method, number) in methods.into_iter().flat_map(|method| [(method, 0), (method, 1)]) {
            let mut heard = Vec::new();
            for mut id in [id.clone(), absent.clone()] {
                let name = id["taskId"].as_str().unwrap().to_owned();
                if method == "tasks/update" {
                    id["inputResponses"] = json!({});
                }
                let reply = eve.send(number, method, id).await;
                let (status, names) = (reply.status, reply.names().map(str::to_owned).collect::<Vec<_>>());
                let error = reply.answer().await["error"].take();
                assert_eq!(error["code"], -32602, "{method}");
                heard.push((status, names, error.to_string().replace(&name, "")));
            }
            assert_eq!(heard[0], heard[1], "{method} tells a task of another from none");
        }
        if revision == LATEST_SESSION {
            assert_eq!(eve.result(1, "tasks/list", json!({})).await["tasks"], json!([]));
        }
        assert_eq!(ann.result(1, "tasks/get", id.clone()).await["status"], "working");
        sites.gate.add_permits(1);
        ann.outcome(1, &id).await;
    }
}

#[tokio::test]
async fn a_listener_hears_of_a_task_that_runs_elsewhere() {
    let sites = Sites::open().await;
    let ann = User::open(&sites, "ann", STATELESS).await;
    let eve = User::open(&sites, "eve", STATELESS).await;
    let id = ann.create(0, "gate").await;
    let params = json!({ "notifications": { "taskIds": [id["taskId"]] } });
    let mut listening = ann.send(1, "subscriptions/listen", params.clone()).await;
    let mut overhears = eve.send(1, "subscriptions/listen", params).await;
    for stream in [&mut listening, &mut overhears] {
        assert_eq!(next_event(stream).await["method"], "notifications/subscriptions/acknowledged");
    }
    sites.gate.add_permits(1);
    loop {
        let told = next_event(&mut listening).await;
        assert_eq!(told["method"], "notifications/tasks", "{told}");
        if told["params"]["status"] == "completed" {
            assert_eq!(text(&told["params"]["result"]), "through at 0");
            break;
        }
    }
    assert!(timeout(Duration::from_millis(200), overhears.event()).await.is_err(), "eve hears nothing");
}

#[tokio::test]
async fn a_task_whose_endpoint_is_gone_fails() {
    for revision in BOTH {
        let sites = Sites::open().await;
        let ann = User::open(&sites, "ann", revision).await;
        let id = ann.create(0, "gate").await;
        ann.until(1, &id, "working").await;
        let time = PausedTime::start();
        let (method, params) = match revision {
            LATEST_SESSION => ("tasks/result", id.clone()),
            _ => ("subscriptions/listen", json!({ "notifications": { "taskIds": [id["taskId"]] } })),
        };
        // A response that has nothing to say yet begins as a stream.
        let (mut waiting, ()) =
            tokio::join!(ann.send(1, method, params), time.advance(Duration::from_secs(1)));
        time.advance(GONE).await;
        assert_eq!(ann.result(1, "tasks/get", id.clone()).await["status"], "working", "it is there");
        sites.unplug();
        for _ in 0..3 {
            time.advance(GONE / 2).await;
        }
        let failed = ann.result(1, "tasks/get", id.clone()).await;
        assert_eq!(failed["status"], "failed", "{revision}");
        let why = failed["statusMessage"].as_str().unwrap();
        assert!(why.contains("has stopped") && why.contains("call again"), "{why}");
        let told: Vec<Value> = match revision {
            LATEST_SESSION => vec![waiting.answer().await["error"].take()],
            _ => {
                let mut told = Vec::new();
                while told.last().is_none_or(|last: &Value| last["status"] != "failed") {
                    told.push(next_event(&mut waiting).await["params"].take());
                }
                told
            }
        };
        assert!(told.last().unwrap().to_string().contains("has stopped"), "{told:?}");
        assert!(told.windows(2).all(|pair| pair[0] != pair[1]), "changes alone are told: {told:?}");
        // It comes back, and finds that its task is over.
        sites.plug_in();
        time.advance(GONE).await;
        sites.until_ended(1).await;
        drop(time);
        assert_eq!(ann.result(0, "tasks/get", id.clone()).await["status"], "failed");
    }
}

#[tokio::test]
async fn a_task_that_waits_for_input_outlives_its_endpoint() {
    let sites = Sites::open().await;
    let ann = User::open(&sites, "ann", STATELESS).await;
    let id = ann.create(0, "interview").await;
    ann.until(1, &id, "input_required").await;
    let time = PausedTime::start();
    sites.unplug();
    time.advance(GONE).await;
    assert_eq!(ann.result(1, "tasks/get", id.clone()).await["status"], "input_required");
    let mut update = id.clone();
    let yes = json!({ "action": "accept", "content": { "confirm": true } });
    update["inputResponses"] = json!({ "one": yes, "other": yes });
    ann.result(1, "tasks/update", update).await;
    drop(time);
    assert_eq!(text(&ann.outcome(1, &id).await), "true true at 1");
}

#[tokio::test]
async fn an_outcome_is_not_lost_when_the_backplane_fails() {
    for method in ["update_task", "task", "task_call"] {
        let sites = Sites::open().await;
        let ann = User::open(&sites, "ann", STATELESS).await;
        let id = ann.create(0, "gate").await;
        ann.until(1, &id, "working").await;
        let time = PausedTime::start();
        sites.faults[0].fail(method, 4);
        sites.gate.add_permits(1);
        for _ in 0..6 {
            time.advance(Duration::from_secs(5)).await;
        }
        drop(time);
        let done = ann.result(1, "tasks/get", id.clone()).await;
        assert_eq!(done["status"], "completed", "{method}: {done}");
    }
}

#[tokio::test]
async fn a_task_begins_when_the_backplane_is_back() {
    let sites = Sites::open().await;
    let ann = User::open(&sites, "ann", STATELESS).await;
    sites.gate.add_permits(1);
    sites.faults[0].fail("task_call", 2);
    let id = ann.create(0, "gate").await;
    assert_eq!(text(&ann.outcome(1, &id).await), "through at 0");
    // One that cannot be kept is refused, and none runs.
    for method in ["create_task", "renew_replica"] {
        let time = PausedTime::start();
        time.advance(GONE).await;
        drop(time);
        sites.faults[0].fail(method, 1);
        let params = json!({ "name": "gate", "arguments": {} });
        let refused = ann.send(0, "tools/call", params).await.answer().await;
        assert!(refused["error"]["message"].as_str().unwrap().contains("try again later"), "{refused}");
    }
    assert_eq!(sites.ended.load(Ordering::SeqCst), 1);
}
