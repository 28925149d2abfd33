//! Tools: a definition and a function.

use std::borrow::Cow;
use std::future::Future;
use std::sync::Arc;

use refmcp_proto::app::ToolUi;
use refmcp_proto::jsonrpc::read_member;
use refmcp_proto::model::{
    self, CallToolResult, ContentBlock, JsonObject, Meta, TaskSupport, ToolAnnotations, UiToolMeta,
    UiVisibility,
};
use refmcp_proto::param_headers::{ParamHeader, param_headers};
use refmcp_proto::schema::SchemaValidator;
use schemars::generate::Contract;
use schemars::{JsonSchema, Schema as RawSchema, SchemaGenerator, json_schema};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::app::ui_meta;
use crate::call::Call;
use crate::error::CallError;
use crate::method::{Work, run_tool};
use crate::schema::schema_of;
use crate::statistics::MethodStatistics;

type Run = dyn Fn(Call, Arc<Tool>, Value) -> Work + Send + Sync;

/// A tool: what clients are told about it, and the function behind it.
///
/// ```
/// use refmcp_server::{Call, CallError, Tool};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Add { a: f64, b: f64 }
///
/// async fn add(_: Call, Add { a, b }: Add) -> Result<String, CallError> {
///     Ok((a + b).to_string())
/// }
///
/// let tool = Tool::new("add", "Adds two numbers", add).read_only();
/// # let _ = tool;
/// ```
#[derive(Clone)]
#[must_use]
pub struct Tool {
    pub(crate) definition: model::Tool,
    pub(crate) inline: bool,
    pub(crate) input_validator: Option<SchemaValidator>,
    pub(crate) output_validator: Option<SchemaValidator>,
    pub(crate) mirrored: Vec<ParamHeader>,
    pub(crate) scopes: Vec<Arc<str>>,
    /// What is said about its app.
    pub(crate) ui: Option<UiToolMeta>,
    /// Text for clients that show no apps.
    pub(crate) text_without_app: Option<Arc<str>>,
    /// Whether its handler says when a call becomes a task.
    pub(crate) starts_task_itself: bool,
    /// The numbers of its calls, once it is in a catalog that has room for them.
    pub(crate) statistics: Option<Arc<MethodStatistics>>,
    run: Arc<Run>,
}

impl Tool {
    /// A tool by its name, a sentence on what it does, and the function that does it. The schemas of its arguments
    /// and of its structured output come from the function's types.
    pub fn new<A, O, F, Fut>(name: impl Into<String>, description: impl Into<String>, handler: F) -> Self
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        O: ToolOutput,
        F: Fn(Call, A) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, CallError>> + Send + 'static,
    {
        let mut definition = model::Tool::new(name, description);
        definition.input_schema = object_schema(schema_of::<A>(Contract::Deserialize));
        definition.output_schema = O::schema();
        let handler = Arc::new(handler);
        let run = move |call: Call, tool: Arc<Self>, arguments: Value| -> Work {
            let handler = handler.clone();
            let handler = |call: Call, arguments: Value| async move {
                // The schema was met; what is left are limits that only the type knows.
                let arguments =
                    serde_json::from_value(arguments).map_err(|error| unfit::<A>(&call, &error))?;
                handler(call, arguments).await?.into_result()
            };
            // One allocation for the checks and the handler.
            Box::pin(run_tool(call, tool, arguments, handler))
        };
        Self {
            definition,
            inline: false,
            input_validator: None,
            output_validator: None,
            mirrored: Vec::new(),
            scopes: Vec::new(),
            ui: None,
            text_without_app: None,
            starts_task_itself: false,
            statistics: None,
            run: Arc::new(run),
        }
    }

    /// The tool changes nothing.
    pub fn read_only(self) -> Self {
        self.annotate(|hints| hints.read_only(true))
    }

    /// The tool may destroy something.
    pub fn destructive(self) -> Self {
        self.annotate(|hints| hints.destructive(true))
    }

    /// Calling it twice with the same arguments does no more than calling it once.
    pub fn idempotent(self) -> Self {
        self.annotate(|hints| hints.idempotent(true))
    }

    /// Changes what is said about the tool's behaviour.
    pub fn annotate(mut self, change: impl FnOnce(ToolAnnotations) -> ToolAnnotations) -> Self {
        let hints = self.definition.annotations.take().unwrap_or_default();
        self.definition.annotations = Some(change(hints));
        self
    }

    /// More about the tool, for programs.
    pub fn meta(mut self, meta: Meta) -> Self {
        self.definition.meta = Some(meta);
        self
    }

    /// Calls of the tool are shown by the [`App`](crate::App) at this URI, in clients that show apps. Its results have content
    /// for the model and for all other clients; data for the page alone belongs into `structuredContent` and `_meta`.
    #[doc(alias = "ui")]
    pub fn app(mut self, uri: impl Into<String>) -> Self {
        self.ui.get_or_insert_default().resource_uri = Some(uri.into());
        self
    }

    /// Who may call the tool: the model, apps of this server, or both, which is the default. It is the host that keeps to
    /// this: a server cannot tell who calls, and clients without apps offer all tools to the model.
    pub fn visible_to(mut self, parties: impl IntoIterator<Item = UiVisibility>) -> Self {
        self.ui.get_or_insert_default().visibility = Some(parties.into_iter().collect());
        self
    }

    /// Adds this text to the results that clients without apps get: what they miss, or where else it is to be had.
    pub fn text_without_app(mut self, text: impl Into<Arc<str>>) -> Self {
        self.text_without_app = Some(text.into());
        self
    }

    /// Another schema for the arguments than the type's. One without `properties` gets an empty object of them.
    pub fn input_schema(mut self, schema: JsonObject) -> Self {
        self.definition.input_schema = with_properties(schema);
        self
    }

    /// Another schema for the structured output than the type's.
    pub fn output_schema(mut self, schema: JsonObject) -> Self {
        self.definition.output_schema = Some(Arc::new(schema));
        self
    }

    /// The tool is done at once: it is run right where the request was read, which is several times faster. A tool
    /// that waits may say so too, it is moved away when it does; one that computes for long or blocks must not.
    pub fn inline(mut self) -> Self {
        self.inline = true;
        self
    }

    /// Whether calls become tasks, which go on after their first response: where the client wants it (2025-11-25) or has
    /// declared that it takes them (2026-07-28). The handler is the same; what it reports as progress is what the task is
    /// doing, and its requests to the client go through the task.
    ///
    /// ```
    /// # use refmcp_server::{Call, CallError, NoArguments, Tool, model::TaskSupport};
    /// async fn index(call: Call, _: NoArguments) -> Result<String, CallError> {
    ///     call.progress(1.0, Some(2.0), "reading").await;
    ///     let sure = call.confirm("sure", "Go on?")?;
    ///     Ok(format!("sure: {sure}"))
    /// }
    /// let tool = Tool::new("index", "Indexes all files", index).task(TaskSupport::Optional);
    /// # let _ = tool;
    /// ```
    #[doc(alias = "task_support")]
    #[doc(alias = "long_running")]
    pub fn task(mut self, support: TaskSupport) -> Self {
        let execution = self.definition.execution.take().unwrap_or_default();
        self.definition.execution = Some(execution.task_support(support));
        self
    }

    /// A call becomes a task of 2026-07-28 where its handler calls [`Call::start_task`], and not before it runs.
    pub fn starts_task_itself(mut self) -> Self {
        self.starts_task_itself = true;
        self
    }

    pub(crate) fn task_support(&self) -> &TaskSupport {
        let support =
            self.definition.execution.as_ref().and_then(|execution| execution.task_support.as_ref());
        support.unwrap_or(&TaskSupport::Forbidden)
    }

    /// The scopes that a client's token must have to call it. They are not checked where no token is required.
    pub fn scopes(mut self, scopes: impl IntoIterator<Item = impl Into<Arc<str>>>) -> Self {
        self.scopes = scopes.into_iter().map(Into::into).collect();
        self
    }

    /// Whether a repeated call does no harm.
    pub(crate) fn is_repeatable(&self) -> bool {
        let hints = self.definition.annotations.as_ref();
        hints.is_some_and(|hints| hints.idempotent_hint == Some(true) || hints.read_only_hint == Some(true))
    }

    pub(crate) fn run(self: Arc<Self>, call: Call, arguments: Value) -> Work {
        (self.run.clone())(call, self, arguments)
    }

    /// Compiles the schemas, and checks what is said about the app.
    pub(crate) fn compile(&mut self) -> Result<(), InvalidTool> {
        let name = self.definition.name.clone();
        let named = |part, reason| InvalidTool { name: name.clone(), part, reason };
        if let Some(ui) = &self.ui {
            self.definition.meta.get_or_insert_default().extend(ui_meta(ui));
        }
        // Read as a host does, also where it was written by hand.
        if let Some(ui) = ToolUi::of(&self.definition) {
            if let Some(fault) = ui.faults.first() {
                return Err(named("_meta.ui", fault.to_string()));
            }
            self.ui = Some(ui.meta);
        }
        if self.definition.input_schema.get("type").and_then(Value::as_str) != Some("object") {
            return Err(named("input schema", "its type is not \"object\"".to_owned()));
        }
        self.mirrored =
            param_headers(&self.definition.input_schema).map_err(|error| named("input schema", error))?;
        let input = SchemaValidator::compile(&self.definition.input_schema);
        self.input_validator = Some(input.map_err(|error| named("input schema", error.to_string()))?);
        if let Some(schema) = &self.definition.output_schema {
            let output = SchemaValidator::compile(schema);
            self.output_validator = Some(output.map_err(|error| named("output schema", error.to_string()))?);
        }
        Ok(())
    }
}

item!(Tool: title);

/// Arguments are always an object, also where a type would take anything.
fn object_schema(mut schema: JsonObject) -> Arc<JsonObject> {
    schema.entry("type").or_insert_with(|| "object".into());
    with_properties(schema)
}

/// The properties of arguments are always listed: clients go through them without asking whether there are any.
fn with_properties(mut schema: JsonObject) -> Arc<JsonObject> {
    schema.entry("properties").or_insert_with(|| JsonObject::new().into());
    Arc::new(schema)
}

/// The error for arguments that meet the schema and do not fit the type. They are read once more, from the request, to
/// find the one that is to blame.
#[cold]
fn unfit<A: DeserializeOwned>(call: &Call, error: &serde_json::Error) -> CallError {
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(borrow)]
        arguments: Option<&'a RawValue>,
    }
    let params = serde_json::from_str::<Params>(&call.dispatch().params).ok();
    let text = params.and_then(|params| params.arguments).map(RawValue::get);
    let named = text.and_then(|text| read_member::<A>("arguments", text).err());
    CallError::bad_arguments(named.unwrap_or_else(|| format!("arguments: {error}")))
}

/// The arguments of a tool that takes none.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub struct NoArguments {}

impl JsonSchema for NoArguments {
    fn schema_name() -> Cow<'static, str> {
        "NoArguments".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> RawSchema {
        json_schema!({ "type": "object", "properties": {}, "additionalProperties": false })
    }
}

/// Why a tool cannot be offered: one of its schemas cannot be compiled, or what it says of its app is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("tool {name}: {part}: {reason}")]
pub struct InvalidTool {
    /// The tool.
    pub name: String,
    /// Which part of it: `input schema`, `output schema` or `_meta.ui`.
    pub part: &'static str,
    /// What is wrong with it.
    pub reason: String,
}

/// What a tool can give: text, content blocks, structured values, or a result with every detail.
pub trait ToolOutput: Send + 'static {
    /// The schema of the structured part, if there is one.
    fn schema() -> Option<Arc<JsonObject>> {
        None
    }

    /// The result to send.
    fn into_result(self) -> Result<CallToolResult, CallError>;
}

/// A structured value, sent as such and, for clients that know only text, as text too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Json<T>(pub T);

impl ToolOutput for CallToolResult {
    fn into_result(self) -> Result<CallToolResult, CallError> {
        Ok(self)
    }
}

impl ToolOutput for String {
    fn into_result(self) -> Result<CallToolResult, CallError> {
        Ok(CallToolResult::text(self))
    }
}

impl ToolOutput for &'static str {
    fn into_result(self) -> Result<CallToolResult, CallError> {
        Ok(CallToolResult::text(self))
    }
}

impl ToolOutput for ContentBlock {
    fn into_result(self) -> Result<CallToolResult, CallError> {
        Ok(CallToolResult::new(vec![self]))
    }
}

impl ToolOutput for Vec<ContentBlock> {
    fn into_result(self) -> Result<CallToolResult, CallError> {
        Ok(CallToolResult::new(self))
    }
}

impl<T: Serialize + JsonSchema + Send + 'static> ToolOutput for Json<T> {
    fn schema() -> Option<Arc<JsonObject>> {
        Some(Arc::new(schema_of::<T>(Contract::Serialize)))
    }

    fn into_result(self) -> Result<CallToolResult, CallError> {
        Ok(CallToolResult::structured(serde_json::to_value(self.0)?))
    }
}

/// Text for people, and the same as a structured value.
impl<T: Serialize + JsonSchema + Send + 'static> ToolOutput for (String, Json<T>) {
    fn schema() -> Option<Arc<JsonObject>> {
        Json::<T>::schema()
    }

    fn into_result(self) -> Result<CallToolResult, CallError> {
        Ok(CallToolResult::text(self.0).structured_content(serde_json::to_value(self.1.0)?))
    }
}
