//! Prompts: a definition, a function that fills it in, and completions of its arguments.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use refmcp_proto::model::{self, GetPromptResult, PromptArgument};

use crate::call::Call;
use crate::error::CallError;

type Work = Pin<Box<dyn Future<Output = Result<GetPromptResult, CallError>> + Send>>;

/// A function that proposes values of an argument.
pub(crate) type Completer =
    Arc<dyn Fn(Call, CompletionRequest) -> Pin<Box<dyn Future<Output = Vec<String>> + Send>> + Send + Sync>;

/// The arguments of a prompt.
pub type PromptArguments = BTreeMap<String, String>;

/// A request for completions of an argument.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CompletionRequest {
    /// The value so far.
    pub value: String,
    /// The other arguments that are already known.
    pub known: BTreeMap<String, String>,
}

impl CompletionRequest {
    /// The candidates that begin with the value, ignoring case.
    pub fn among<'a>(&self, candidates: impl IntoIterator<Item = &'a str>) -> Vec<String> {
        let typed = self.value.to_lowercase();
        let fits = candidates.into_iter().filter(|candidate| candidate.to_lowercase().starts_with(&typed));
        fits.map(str::to_owned).collect()
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
#[must_use]
pub struct Prompt {
    pub(crate) definition: model::Prompt,
    pub(crate) completers: BTreeMap<String, Completer>,
    fill: Arc<dyn Fn(Call, PromptArguments) -> Work + Send + Sync>,
}

impl Prompt {
    /// A prompt by its name and the function that fills it in. Required arguments are there when it runs.
    pub fn new<O, F, Fut>(name: impl Into<String>, fill: F) -> Self
    where
        O: Into<GetPromptResult>,
        F: Fn(Call, PromptArguments) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, CallError>> + Send + 'static,
    {
        let fill = Arc::new(fill);
        let work = move |call: Call, arguments: PromptArguments| -> Work {
            let fill = fill.clone();
            Box::pin(async move { Ok(fill(call, arguments).await?.into()) })
        };
        let definition = model::Prompt::new(name);
        Self { definition, completers: BTreeMap::new(), fill: Arc::new(work) }
    }

    /// The name for programs.
    pub fn name(&self) -> &str {
        &self.definition.name
    }

    /// Adds a required argument.
    pub fn required(self, name: impl Into<String>, description: impl Into<String>) -> Self {
        self.argument(PromptArgument::new(name).description(description).required(true))
    }

    /// Adds an optional argument.
    pub fn optional(self, name: impl Into<String>, description: impl Into<String>) -> Self {
        self.argument(PromptArgument::new(name).description(description).required(false))
    }

    /// Adds an argument with every detail.
    pub fn argument(mut self, argument: PromptArgument) -> Self {
        self.definition.arguments.get_or_insert_default().push(argument);
        self
    }

    pub(crate) fn fill(&self, call: Call, arguments: PromptArguments) -> Work {
        (self.fill)(call, arguments)
    }
}

item!(Prompt: title, description, complete);
