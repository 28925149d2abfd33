//! Prompts: a definition, a function that fills it in, and suggestions for its arguments.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use refmcp_proto::model::{self, GetPromptResult, Icon, PromptArgument, PromptMessage};

use crate::call::Call;
use crate::error::CallError;

type Work = Pin<Box<dyn Future<Output = Result<GetPromptResult, CallError>> + Send>>;
type Suggest =
    dyn Fn(Call, CompletionRequest) -> Pin<Box<dyn Future<Output = Vec<String>> + Send>> + Send + Sync;

/// The arguments of a prompt.
pub type PromptArguments = BTreeMap<String, String>;

/// An argument that somebody is typing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CompletionRequest {
    /// What was typed so far.
    pub value: String,
    /// The arguments that are already known.
    pub known: BTreeMap<String, String>,
}

impl CompletionRequest {
    /// Those of the candidates that begin with what was typed, whatever the case.
    pub fn among<'a>(&self, candidates: impl IntoIterator<Item = &'a str>) -> Vec<String> {
        let typed = self.value.to_lowercase();
        let fits = candidates.into_iter().filter(|candidate| candidate.to_lowercase().starts_with(&typed));
        fits.map(str::to_owned).collect()
    }
}

/// Makes suggestions.
#[derive(Clone)]
pub(crate) struct Completer(Arc<Suggest>);

impl Completer {
    pub(crate) fn new<F, Fut>(suggest: F) -> Self
    where
        F: Fn(Call, CompletionRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Vec<String>> + Send + 'static,
    {
        Self(Arc::new(move |call, completing| Box::pin(suggest(call, completing))))
    }

    pub(crate) async fn suggest(&self, call: Call, completing: CompletionRequest) -> Vec<String> {
        (self.0)(call, completing).await
    }
}

/// A prompt: what clients are told about it, and the function that fills it in.
///
/// ```
/// use refmcp_server::{Prompt, model::PromptMessage};
///
/// let greet = Prompt::new("greet", |_call, arguments| async move {
///     Ok(PromptMessage::user(format!("Greet {}.", arguments["name"])))
/// })
/// .description("Asks for a greeting")
/// .required("name", "Whom to greet");
/// # let _ = greet;
/// ```
#[derive(Clone)]
pub struct Prompt {
    pub(crate) definition: model::Prompt,
    pub(crate) completers: BTreeMap<String, Completer>,
    fill: Arc<dyn Fn(Call, PromptArguments) -> Work + Send + Sync>,
}

impl Prompt {
    /// A prompt by its name and the function that fills it in. Required arguments are there when it runs.
    pub fn new<O, F, Fut>(name: impl Into<String>, fill: F) -> Self
    where
        O: Into<PromptOutput>,
        F: Fn(Call, PromptArguments) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, CallError>> + Send + 'static,
    {
        let fill = Arc::new(fill);
        let work = move |call: Call, arguments: PromptArguments| -> Work {
            let fill = fill.clone();
            Box::pin(async move { Ok(fill(call, arguments).await?.into().0) })
        };
        let definition = model::Prompt::new(name);
        Self { definition, completers: BTreeMap::new(), fill: Arc::new(work) }
    }

    /// The name for programs.
    pub fn name(&self) -> &str {
        &self.definition.name
    }

    /// A name for people.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.definition.title = Some(title.into());
        self
    }

    /// What it asks for.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.definition.description = Some(description.into());
        self
    }

    /// A picture for people.
    #[must_use]
    pub fn icon(mut self, icon: Icon) -> Self {
        self.definition.icons.get_or_insert_default().push(icon);
        self
    }

    /// Adds an argument that must be given.
    #[must_use]
    pub fn required(self, name: impl Into<String>, description: impl Into<String>) -> Self {
        let mut argument = PromptArgument::new(name);
        argument.required = Some(true);
        argument.description = Some(description.into());
        self.argument(argument)
    }

    /// Adds an argument that may be left out.
    #[must_use]
    pub fn optional(self, name: impl Into<String>, description: impl Into<String>) -> Self {
        let mut argument = PromptArgument::new(name);
        argument.required = Some(false);
        argument.description = Some(description.into());
        self.argument(argument)
    }

    /// Adds an argument with every detail.
    #[must_use]
    pub fn argument(mut self, argument: PromptArgument) -> Self {
        self.definition.arguments.get_or_insert_default().push(argument);
        self
    }

    /// Suggests values for an argument.
    #[must_use]
    pub fn complete<F, Fut>(mut self, argument: impl Into<String>, suggest: F) -> Self
    where
        F: Fn(Call, CompletionRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Vec<String>> + Send + 'static,
    {
        self.completers.insert(argument.into(), Completer::new(suggest));
        self
    }

    pub(crate) fn fill(&self, call: Call, arguments: PromptArguments) -> Work {
        (self.fill)(call, arguments)
    }
}

impl fmt::Debug for Prompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prompt").field("name", &self.definition.name).finish_non_exhaustive()
    }
}

/// What filling in can give: one message, several, or a result with every detail.
#[derive(Debug)]
pub struct PromptOutput(GetPromptResult);

impl From<PromptMessage> for PromptOutput {
    fn from(message: PromptMessage) -> Self {
        Self(GetPromptResult::new(vec![message]))
    }
}

impl From<Vec<PromptMessage>> for PromptOutput {
    fn from(messages: Vec<PromptMessage>) -> Self {
        Self(GetPromptResult::new(messages))
    }
}

impl From<GetPromptResult> for PromptOutput {
    fn from(result: GetPromptResult) -> Self {
        Self(result)
    }
}
