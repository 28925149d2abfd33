//! rmcp behind the few calls the scenario makes. Answers are given as the JSON that rmcp's types hold.

use std::collections::HashMap;
use std::process;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail, ensure};
use rmcp::model::*;
use rmcp::service::{
    NotificationContext, PeerRequestOptions, RequestContext, RunningService, RxJsonRpcMessage, ServiceError,
    TxJsonRpcMessage,
};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess, Transport};
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt, ErrorData, RoleClient};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::exit_recorder::Place;
use crate::form;
use crate::observed::{Observed, RequestLog};

const NOTIFICATION_TIMEOUT: Duration = Duration::from_secs(3);

/// The JSON of one of rmcp's types.
pub fn wire(value: impl Serialize) -> Value {
    serde_json::to_value(value).expect("rmcp's types are JSON")
}

/// How the client answers a form or a URL.
#[derive(Clone, Copy)]
pub enum Reply {
    Fill,
    Accept,
    Decline,
}

/// What the handler has seen and how it answers, shared with the scenario.
pub struct Desk {
    traffic: Mutex<Vec<Value>>,
    inbox: Mutex<Vec<(String, Value)>>,
    asked: Mutex<Vec<Value>>,
    pub reply: Mutex<Reply>,
    pub roots: Mutex<Vec<&'static str>>,
}

impl Desk {
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            traffic: Mutex::default(),
            inbox: Mutex::default(),
            asked: Mutex::default(),
            reply: Mutex::new(Reply::Decline),
            roots: Mutex::default(),
        })
    }

    fn receive(&self, method: &str, params: impl Serialize) {
        self.inbox.lock().unwrap().push((method.to_owned(), wire(params)));
    }

    /// Forgets the messages of the feature before.
    pub fn begin(&self) {
        self.traffic.lock().unwrap().clear();
        self.clear();
    }

    /// Every message from the server during this feature, in order.
    pub fn traffic(&self) -> Vec<Value> {
        self.traffic.lock().unwrap().clone()
    }

    /// The requests that the server sent during this feature.
    pub fn server_requests(&self) -> Vec<Value> {
        let mut messages = self.traffic();
        messages.retain(|message| message.get("method").is_some() && message.get("id").is_some());
        messages
    }

    pub fn clear(&self) {
        self.inbox.lock().unwrap().clear();
        self.asked.lock().unwrap().clear();
    }

    /// The parameters of the notifications that came so far.
    pub fn of(&self, method: &str) -> Vec<Value> {
        let inbox = self.inbox.lock().unwrap();
        inbox.iter().filter(|(name, _)| name == method).map(|(_, params)| params.clone()).collect()
    }

    pub async fn next(&self, method: &str, matches: impl Fn(&Value) -> bool) -> Result<Value> {
        let begin = Instant::now();
        while begin.elapsed() < NOTIFICATION_TIMEOUT {
            if let Some(params) = self.of(method).into_iter().find(&matches) {
                return Ok(params);
            }
            sleep(Duration::from_millis(10)).await;
        }
        bail!("no {method} within {NOTIFICATION_TIMEOUT:?}")
    }

    /// What the server asked last.
    pub fn question(&self) -> Result<Value> {
        self.asked.lock().unwrap().last().cloned().ok_or_else(|| anyhow!("the client was not asked"))
    }

    fn ask(&self, question: &Value) {
        self.asked.lock().unwrap().push(question.clone());
    }
}

struct Handler {
    desk: Arc<Desk>,
    config: ClientConfig,
}

impl ClientHandler for Handler {
    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        self.desk.ask(&wire(params));
        let message = SamplingMessage::assistant_text("the scenario answers 4711");
        Ok(CreateMessageResult::new(message, "scenario-model".to_owned()).with_stop_reason("endTurn"))
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let question = wire(params);
        self.desk.ask(&question);
        let reply = *self.desk.reply.lock().unwrap();
        Ok(match reply {
            Reply::Fill => ElicitResult::new(ElicitationAction::Accept).with_content(form::fill(&question)),
            Reply::Accept => ElicitResult::new(ElicitationAction::Accept),
            Reply::Decline => ElicitResult::new(ElicitationAction::Decline),
        })
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        let roots = self.desk.roots.lock().unwrap().iter().map(|uri| Root::new(*uri)).collect();
        Ok(ListRootsResult::new(roots))
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.desk.receive("notifications/message", params);
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.desk.receive("notifications/progress", params);
    }

    async fn on_resource_updated(
        &self,
        params: ResourceUpdatedNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.desk.receive("notifications/resources/updated", params);
    }

    async fn on_resource_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.desk.receive("notifications/resources/list_changed", ());
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.desk.receive("notifications/tools/list_changed", ());
    }

    async fn on_prompt_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.desk.receive("notifications/prompts/list_changed", ());
    }

    fn get_info(&self) -> ClientConfig {
        self.config.clone()
    }
}

fn child_process(command: &[String]) -> Result<TokioChildProcess> {
    let mut process = Command::new(&command[0]);
    process.args(&command[1..]);
    Ok(TokioChildProcess::new(process)?)
}

fn streamable_http(url: &str, log: &RequestLog) -> Result<StreamableHttpClientTransport<Observed>> {
    let client = Observed::new(log.clone())?;
    Ok(StreamableHttpClientTransport::with_client(client, StreamableHttpClientTransportConfig::with_uri(url)))
}

/// A transport that also shows the desk every message from the server.
struct Tapped<T> {
    transport: T,
    desk: Arc<Desk>,
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Tapped<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.transport.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let message = self.transport.receive().await?;
        self.desk.traffic.lock().unwrap().push(wire(&message));
        Some(message)
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.transport.close().await
    }
}

fn capabilities(revision: &str) -> ClientCapabilities {
    let mut roots = RootsCapabilities::default();
    if revision < "2026-07-28" {
        roots.list_changed = Some(true);
    }
    let mut capabilities = ClientCapabilities::default();
    capabilities.roots = Some(roots);
    capabilities.sampling = Some(SamplingCapability::default());
    capabilities.elicitation = match revision {
        "2024-11-05" | "2025-03-26" => None,
        "2025-06-18" => Some(ElicitationCapability::new()),
        _ => Some(
            ElicitationCapability::new()
                .with_form(FormElicitationCapability::new())
                .with_url(UrlElicitationCapability::new()),
        ),
    };
    capabilities
}

/// The four lists, by the names their results have.
pub const LISTS: [(&str, &str); 4] =
    [("tools", "name"), ("resources", "uri"), ("resourceTemplates", "uriTemplate"), ("prompts", "name")];

/// Names every item of a list: the list's second name in [`LISTS`].
pub fn key(kind: &str) -> &'static str {
    LISTS.iter().find(|(name, _)| *name == kind).expect("a known list").1
}

pub struct Session {
    service: RunningService<RoleClient, Handler>,
}

impl Session {
    pub async fn connect(revision: &str, place: &Place, desk: &Arc<Desk>) -> Result<Self> {
        let version: ProtocolVersion = serde_json::from_value(json!(revision))?;
        let info = Implementation::new("refmcp-interop-rmcp", "0.0.0");
        let config = ClientConfig::new(capabilities(revision), info).with_protocol_version(version.clone());
        // `initialize` proposes the configured version; the newest revision is opened by `server/discover` instead.
        let lifecycle = if version.has_initialize() {
            ClientLifecycleMode::Initialize
        } else {
            ClientLifecycleMode::Discover { preferred_versions: vec![version] }
        };
        let handler = Handler { desk: desk.clone(), config };
        let service = match place {
            Place::Command(command) => {
                let transport = Tapped { transport: child_process(command)?, desk: desk.clone() };
                handler.serve_with_lifecycle(transport, lifecycle).await?
            }
            Place::Url(url, log) => {
                let transport = Tapped { transport: streamable_http(url, log)?, desk: desk.clone() };
                handler.serve_with_lifecycle(transport, lifecycle).await?
            }
        };
        Ok(Self { service })
    }

    /// The negotiated revision, the server's name and its capabilities.
    pub fn server(&self) -> Result<Value> {
        Ok(wire(self.service.peer_info().ok_or_else(|| anyhow!("nothing known of the server"))?.as_ref()))
    }

    pub async fn list_page(&self, kind: &str, cursor: Option<String>) -> Result<Value> {
        let params = cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
        Ok(match kind {
            "tools" => wire(self.service.list_tools(params).await?),
            "resources" => wire(self.service.list_resources(params).await?),
            "resourceTemplates" => wire(self.service.list_resource_templates(params).await?),
            "prompts" => wire(self.service.list_prompts(params).await?),
            _ => bail!("no list of {kind}"),
        })
    }

    /// All items of a list, by rmcp's own following of the cursors.
    pub async fn list_all(&self, kind: &str) -> Result<Vec<Value>> {
        let items = match kind {
            "tools" => wire(self.service.list_all_tools().await?),
            "resources" => wire(self.service.list_all_resources().await?),
            "resourceTemplates" => wire(self.service.list_all_resource_templates().await?),
            "prompts" => wire(self.service.list_all_prompts().await?),
            _ => bail!("no list of {kind}"),
        };
        Ok(serde_json::from_value(items)?)
    }

    /// Calls a tool and answers what it asks on the way.
    pub async fn call(&self, name: &str, arguments: Value, log_level: Option<&str>) -> Result<Value> {
        let mut params = call_params(name, arguments);
        if let Some(level) = log_level {
            let mut meta = RequestMetaObject::new();
            meta.set_log_level(serde_json::from_value(json!(level))?);
            params.meta = Some(meta);
        }
        Ok(wire(self.service.call_tool(params).await?))
    }

    /// Makes all calls at once and gives their results in the same order.
    pub async fn call_all(&self, name: &str, arguments: Vec<Value>) -> Result<Vec<Value>> {
        let calls: Vec<JoinHandle<_>> = arguments
            .into_iter()
            .map(|arguments| {
                let (peer, params) = (self.service.peer().clone(), call_params(name, arguments));
                tokio::spawn(async move { peer.call_tool(params).await })
            })
            .collect();
        let mut results = Vec::new();
        for call in calls {
            results.push(wire(call.await??));
        }
        Ok(results)
    }

    /// Calls a tool and gives its result with the token of the progress notifications that belong to it.
    pub async fn call_with_progress(&self, name: &str, arguments: Value) -> Result<(Value, Value)> {
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(call_params(name, arguments)));
        let handle = self.service.send_cancellable_request(request, PeerRequestOptions::no_options()).await?;
        let token = wire(&handle.progress_token);
        Ok((wire(handle.await_response().await?), token))
    }

    /// Starts a call and leaves it to itself.
    pub fn call_alone(&self, name: &str, arguments: Value) -> JoinHandle<bool> {
        let (peer, params) = (self.service.peer().clone(), call_params(name, arguments));
        tokio::spawn(async move { peer.call_tool(params).await.is_ok() })
    }

    /// Starts a call and cancels it.
    pub async fn call_cancelled(&self, name: &str, arguments: Value, after: Duration) -> Result<()> {
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(call_params(name, arguments)));
        let mut handle =
            self.service.send_cancellable_request(request, PeerRequestOptions::no_options()).await?;
        sleep(after).await;
        ensure!(handle.rx.try_recv().is_err(), "the call ended before it was cancelled");
        Ok(handle.cancel(Some("scenario cancels".to_owned())).await?)
    }

    pub async fn read_resource(&self, uri: &str) -> Result<Value> {
        Ok(wire(self.service.read_resource(ReadResourceRequestParams::new(uri)).await?))
    }

    pub async fn get_prompt(&self, name: &str, arguments: Value) -> Result<Value> {
        let params = GetPromptRequestParams::new(name).with_arguments(object(arguments));
        Ok(wire(self.service.get_prompt(params).await?))
    }

    pub async fn complete(
        &self,
        prompt: &str,
        argument: (&str, &str),
        context: Option<(&str, &str)>,
    ) -> Result<Value> {
        let context = context.map(|(name, value)| {
            CompletionContext::with_arguments(HashMap::from([(name.to_owned(), value.to_owned())]))
        });
        Ok(wire(self.service.complete_prompt_argument(prompt, argument.0, argument.1, context).await?))
    }

    pub async fn set_level(&self, level: &str) -> Result<()> {
        let level = serde_json::from_value(json!(level))?;
        Ok(self.service.set_level(SetLevelRequestParams::new(level)).await?)
    }

    pub async fn subscribe(&self, uri: &str) -> Result<()> {
        Ok(self.service.subscribe(SubscribeRequestParams::new(uri)).await?)
    }

    pub async fn unsubscribe(&self, uri: &str) -> Result<()> {
        Ok(self.service.unsubscribe(UnsubscribeRequestParams::new(uri)).await?)
    }

    /// Opens `subscriptions/listen`; what comes is put on the desk until the returned watch is dropped.
    pub async fn listen(&self, filter: Value, desk: &Arc<Desk>) -> Result<Watch> {
        let filter: SubscriptionFilter = serde_json::from_value(filter)?;
        let mut subscription = self.service.listen(filter.clone()).await?;
        ensure!(
            subscription.acknowledged() == &filter,
            "acknowledged only {:?}",
            subscription.acknowledged()
        );
        let desk = desk.clone();
        Ok(Watch(tokio::spawn(async move {
            while let Ok(Some(notification)) = subscription.next().await {
                let message = wire(notification);
                desk.receive(message["method"].as_str().unwrap_or_default(), &message["params"]);
            }
        })))
    }

    pub async fn roots_changed(&self) -> Result<()> {
        Ok(self.service.notify_roots_list_changed().await?)
    }

    pub async fn ping(&self) -> Result<Value> {
        Ok(wire(self.service.send_request(ClientRequest::PingRequest(PingRequest::default())).await?))
    }

    pub async fn discover(&self) -> Result<Value> {
        Ok(wire(self.service.discover(RequestMetaObject::new()).await?))
    }

    pub async fn close(&mut self) -> Result<()> {
        self.service.close().await?;
        Ok(())
    }
}

/// A running `subscriptions/listen`; dropping it drops rmcp's subscription, which ends the stream.
pub struct Watch(JoinHandle<()>);

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn call_params(name: &str, arguments: Value) -> CallToolRequestParams {
    CallToolRequestParams::new(name.to_owned()).with_arguments(object(arguments))
}

/// The JSON-RPC error that the server answered with, when it is one.
pub fn rpc_error(error: &anyhow::Error) -> Option<Value> {
    match error.downcast_ref::<ServiceError>() {
        Some(ServiceError::McpError(error)) => Some(wire(error)),
        _ => None,
    }
}

/// Whether rmcp gave up on an answer because its types do not fit it.
pub fn unreadable(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref::<ServiceError>(), Some(ServiceError::UnexpectedResponse))
}

/// What rmcp's types say to the parameters of an elicitation.
pub fn question_refusal(params: &Value) -> Option<String> {
    serde_json::from_value::<ElicitRequestParams>(params.clone()).err().map(|error| error.to_string())
}

/// A number for this run, for tags that must not repeat.
pub fn run_number() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    format!("{}-{}", process::id(), now.as_millis())
}
