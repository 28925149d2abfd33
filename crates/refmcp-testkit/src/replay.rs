//! Handlers forced to run again: at every question, in every revision, with answers that come one at a time, in another
//! order, or before they were asked for. Whatever a client sees in the end must be the same.
//!
//! A handler that asks runs from its beginning whenever answers have come. One that does something visible above its
//! last question, outside of `once`, gives itself away here:
//!
//! ```
//! use refmcp_server::{Call, NoArguments, Server, Tool};
//! use refmcp_testkit::client::accept_all;
//! use refmcp_testkit::replay::replay_call;
//! use serde_json::json;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! let paint = Tool::new("paint", "Paints", |call: Call, _: NoArguments| async move {
//!     let colour = call.sample("colour", "Name a colour.", 20);
//!     let sure = call.confirm("sure", "Now?");
//!     colour?;
//!     Ok(if sure? { "painted" } else { "left alone" })
//! });
//! let server = Server::builder("house", "1").tool(paint).build().unwrap();
//! let seen = replay_call(&server, "tools/call", json!({ "name": "paint" }), accept_all).await.unwrap();
//! assert!(seen.iter().any(|run| run.rounds == 3), "one round for each answer, and the first");
//! # }
//! ```

mod answer_order;
mod compare;

use std::fmt;

use refmcp_proto::model::keys;
use refmcp_proto::revision::{InputMode, Revision};
use refmcp_server::Server;
use serde_json::{Map, Value, json};

use crate::client::{TestClient, all_capabilities};
pub use answer_order::AnswerOrder;

/// What a client saw of one call.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplayRun {
    /// The revision it spoke.
    pub revision: Revision,
    /// How it answered.
    pub order: AnswerOrder,
    /// How often the handler ran, as far as the client can tell.
    pub rounds: usize,
    /// The questions: methods and parameters, in the order in which they were answered.
    pub questions: Vec<Value>,
    /// The last answer, without its id.
    pub answer: Value,
    /// The values of the progress notifications.
    pub progress: Vec<Value>,
    /// Level and data of the log messages.
    pub logs: Vec<Value>,
}

/// Runs a call in every revision and in every [`AnswerOrder`]; gives what was seen, or where two runs differ.
pub async fn replay_call(
    server: &Server,
    method: &str,
    params: Value,
    answer: impl Fn(&Value) -> Value + 'static,
) -> Result<Vec<ReplayRun>, String> {
    Replay::new(server, method, params).answering(answer).run().await
}

/// A call to be run again and again, with every detail.
pub struct Replay<'a> {
    server: &'a Server,
    method: String,
    params: Value,
    capabilities: Value,
    answer: Box<dyn Fn(&Value) -> Value>,
}

impl<'a> Replay<'a> {
    /// A call of a client that can be asked all_capabilities, and is [accept_all](crate::client::accept_all).
    pub fn new(server: &'a Server, method: &str, params: Value) -> Self {
        Self {
            server,
            method: method.to_owned(),
            params,
            capabilities: all_capabilities(),
            answer: Box::new(crate::client::accept_all),
        }
    }

    /// Answers a question, given its method and parameters.
    #[must_use]
    pub fn answering(mut self, answer: impl Fn(&Value) -> Value + 'static) -> Self {
        self.answer = Box::new(answer);
        self
    }

    /// Declares other capabilities.
    #[must_use]
    pub fn capabilities(mut self, capabilities: Value) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// Runs the call in every revision that the server speaks.
    pub async fn run(&self) -> Result<Vec<ReplayRun>, String> {
        let mut all = Vec::new();
        for revision in self.server.config().revisions.clone() {
            let orders = match revision.rules().input_mode {
                InputMode::ServerRequest => &AnswerOrder::BY_REQUEST[..],
                InputMode::InputRequired => &AnswerOrder::BY_RESULT[..],
            };
            for order in orders {
                all.push(self.run_once(revision, *order).await);
            }
        }
        compare::compare(&all)?;
        Ok(all)
    }

    async fn run_once(&self, revision: Revision, order: AnswerOrder) -> ReplayRun {
        let mut client = TestClient::open_with(self.server, revision, self.capabilities.clone()).await;
        client.meta(keys::PROGRESS_TOKEN, json!("reentry"));
        let mut questions = Vec::new();
        let (rounds, mut answer) = match revision.rules().input_mode {
            InputMode::ServerRequest => self.by_request(&mut client, order, &mut questions).await,
            InputMode::InputRequired => self.by_result(&mut client, order, &mut questions).await,
        };
        if let Some(message) = answer.as_object_mut() {
            message.remove("id");
        }
        let progress = client.take_notifications("notifications/progress");
        let progress = progress.into_iter().map(|mut told| told["params"]["progress"].take()).collect();
        let logs = client.take_notifications("notifications/message");
        let logs = logs
            .into_iter()
            .map(|told| json!({ "level": told["params"]["level"], "data": told["params"]["data"] }));
        ReplayRun { revision, order, rounds, questions, answer, progress, logs: logs.collect() }
    }

    /// Every question is a request, and the handler runs again when all that are out have been answered.
    async fn by_request(
        &self,
        client: &mut TestClient,
        order: AnswerOrder,
        questions: &mut Vec<Value>,
    ) -> (usize, Value) {
        // A server without logging refuses this, and then has nothing to log either.
        client.call("logging/setLevel", json!({ "level": "debug" })).await;
        let id = client.request(&self.method, self.params.clone()).await;
        let mut rounds = 1;
        loop {
            let first = match client.answer_or_question(id).await {
                Ok(answer) => return (rounds, answer),
                Err(question) => question,
            };
            // The others of this round were written together with the first.
            client.catch_up().await;
            let mut open = vec![first];
            open.extend(client.requests.drain(..));
            order.arrange(&mut open);
            for question in open {
                client.reply(&question, (self.answer)(&question)).await;
                questions.push(bare(&question));
            }
            rounds += 1;
        }
    }

    /// Questions come as a result, and the call is repeated with as many answers as the order wants.
    async fn by_result(
        &self,
        client: &mut TestClient,
        order: AnswerOrder,
        questions: &mut Vec<Value>,
    ) -> (usize, Value) {
        client.meta(keys::LOG_LEVEL, json!("debug"));
        if order == AnswerOrder::InAdvance {
            return self.in_advance(client, questions).await;
        }
        let (mut params, mut rounds) = (self.params.clone(), 1);
        loop {
            let answer = client.call(&self.method, params).await;
            let Some(open) = asks(&answer) else { return (rounds, answer) };
            let mut open: Vec<(String, Value)> = open.clone().into_iter().collect();
            order.arrange(&mut open);
            let mut given = Map::new();
            for (key, question) in open {
                given.insert(key, (self.answer)(&question));
                questions.push(bare(&question));
            }
            params = self.params.clone();
            params["requestState"] = answer["result"]["requestState"].clone();
            params["inputResponses"] = Value::Object(given);
            rounds += 1;
        }
    }

    /// Finds out what is asked, and then makes the call with all answers at once: the handler runs a single time.
    async fn in_advance(&self, client: &mut TestClient, questions: &mut Vec<Value>) -> (usize, Value) {
        let (mut params, mut given) = (self.params.clone(), Map::new());
        loop {
            client.notifications.clear();
            let answer = client.call(&self.method, params).await;
            let Some(open) = asks(&answer) else { return (1, answer) };
            for (key, question) in open {
                given.insert(key.clone(), (self.answer)(question));
                questions.push(bare(question));
            }
            params = self.params.clone();
            params["inputResponses"] = Value::Object(given.clone());
        }
    }
}

/// The questions of a result, by their keys.
fn asks(answer: &Value) -> Option<&Map<String, Value>> {
    let result = answer.get("result")?;
    (result["resultType"] == "input_required").then(|| result["inputRequests"].as_object())?
}

/// A question without its id.
fn bare(question: &Value) -> Value {
    json!({ "method": question["method"], "params": question["params"] })
}

impl fmt::Debug for Replay<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replay")
            .field("method", &self.method)
            .field("params", &self.params)
            .finish_non_exhaustive()
    }
}
