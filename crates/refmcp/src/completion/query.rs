//! Asking a server how a line may go on. A server that has to be started is asked only if its start was allowed for good,
//! and no server that wants a login gets one here; whatever takes longer than a moment is given up.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use refmcp_client::model::{CompletionArgument, JsonObject, Prompt, Resource, ResourceTemplate, Tool};
use refmcp_client::{Client, Listable};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::definition::described;
use super::{Candidate, Candidates, patience, values};
use crate::args::{CompletionReference, SharedOptions, Target, typed_shared};
use crate::arguments::{all_questions, prompt_schema};
use crate::command::client::requests::reference;
use crate::command::client::{Person, Server, Servers, remembered};
use crate::shell::template_variables;
use crate::store::StateFolder;
use crate::store::listings::{Key, keep, recall};
use crate::ui::progress::Bars;

/// How long a server has to end.
const FAREWELL: Duration = Duration::from_millis(200);

/// What to ask for.
pub(super) enum Question<'a> {
    Tools,
    Prompts,
    Resources,
    Templates,
    /// Names and values of a tool's arguments.
    ToolArguments {
        tool: &'a str,
        given: &'a [String],
        last: &'a str,
    },
    /// Names and values of the arguments of a prompt, or of the variables of a resource template.
    Arguments {
        of: &'a CompletionReference,
        given: &'a [String],
        last: &'a str,
    },
}

/// What the server that a word means has for this; nothing where it is not to be asked.
pub(super) fn ask(options: &[(&str, String)], target: &str, question: &Question<'_>) -> Candidates {
    let found = values::is_target(target).context("no target").and_then(|target| {
        let shared = typed_shared(options).context("the options are not understood")?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let found = runtime.block_on(Asked::answer(&target, &shared, question));
        // What still runs is given up with the process.
        runtime.shutdown_background();
        found
    });
    found.unwrap_or_default()
}

/// A server that may be asked, connected when it has to be.
struct Asked<'a> {
    shared: &'a SharedOptions,
    server: Server,
    until: Instant,
    key: String,
    client: Option<Client>,
}

impl<'a> Asked<'a> {
    async fn answer(
        target: &Target,
        shared: &'a SharedOptions,
        question: &Question<'_>,
    ) -> Result<Candidates> {
        let until = Instant::now() + patience();
        let (person, bars) = (Person::absent(), Bars::hidden().saying(|_| ()));
        let servers = Servers::new(shared, &person)?.beside(&bars);
        let server = tokio::time::timeout_at(until, servers.find(target)).await??;
        let place = std::env::current_dir().unwrap_or_default();
        // What else decides which server is meant, and what it shows.
        let key = format!(
            "{:?}",
            (
                target,
                server.connector.name(),
                &place,
                &shared.config,
                &shared.headers,
                &shared.env,
                &shared.protocol_version
            )
        );
        let mut asked = Self { shared, server, until, key, client: None };
        let found = asked.candidates(question).await;
        if let Some(client) = &asked.client {
            // One that does not end in time is ended with the process.
            let _ = tokio::time::timeout(FAREWELL, client.close()).await;
        }
        found
    }

    async fn candidates(&mut self, question: &Question<'_>) -> Result<Candidates> {
        Ok(match question {
            Question::Tools => {
                let tools: Vec<Tool> = self.listed().await?;
                Candidates::words(tools.into_iter().map(|tool| {
                    let description = tool.description.as_deref().unwrap_or_default();
                    Candidate::new(&tool.name, described(description))
                }))
            }
            Question::Prompts => {
                let prompts: Vec<Prompt> = self.listed().await?;
                Candidates::words(prompts.into_iter().map(|prompt| {
                    let description = prompt.description.as_deref().unwrap_or_default();
                    Candidate::new(&prompt.name, described(description))
                }))
            }
            Question::Resources => {
                let resources: Vec<Resource> = self.listed().await?;
                Candidates::words(
                    resources
                        .into_iter()
                        .map(|resource| Candidate::new(&resource.uri, described(&resource.name))),
                )
            }
            Question::Templates => {
                let templates: Vec<ResourceTemplate> = self.listed().await?;
                Candidates::words(
                    templates
                        .into_iter()
                        .map(|template| Candidate::new(&template.uri_template, described(&template.name))),
                )
            }
            Question::ToolArguments { tool, given, last } => {
                let tools: Vec<Tool> = self.listed().await?;
                let tool = tools.iter().find(|known| known.name == *tool).context("no such tool")?;
                of_schema(&tool.input_schema, given, last)
            }
            Question::Arguments { of, given, last } => self.arguments(of, given, last).await?,
        })
    }

    /// The arguments of a prompt or a template: names from the lists, values from the server.
    async fn arguments(
        &mut self,
        of: &CompletionReference,
        given: &[String],
        last: &str,
    ) -> Result<Candidates> {
        let schema = match of {
            CompletionReference::Prompt(name) => {
                let prompts: Vec<Prompt> = self.listed().await?;
                let prompt =
                    prompts.into_iter().find(|prompt| prompt.name == *name).context("no such prompt")?;
                prompt_schema(prompt.arguments.as_deref().unwrap_or_default())
            }
            CompletionReference::Template(uri) => template_schema(uri),
        };
        let Some((name, value)) = last.split_once('=') else { return Ok(of_schema(&schema, given, last)) };
        let pair =
            |word: &String| word.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
        let context: BTreeMap<String, String> = given.iter().filter_map(pair).collect();
        let argument =
            CompletionArgument { name: name.to_owned(), value: value.to_owned(), extra: JsonObject::new() };
        let until = self.until;
        let client = self.client().await?;
        let reference = reference(of);
        let result =
            tokio::time::timeout_at(until, client.complete(&reference, &argument, &context)).await??;
        let values = result.completion.values.into_iter();
        Ok(Candidates::words(values.map(|value| Candidate::new(format!("{name}={value}"), ""))))
    }

    /// A list of the server, as it was a short while ago or as it is now.
    async fn listed<T: Listable + Serialize + DeserializeOwned>(&mut self) -> Result<Vec<T>> {
        let folder = StateFolder::from_env()?;
        let key = Key::new(&self.key, T::METHOD);
        if let Some(list) = recall(&folder, &key, SystemTime::now()) {
            return Ok(list);
        }
        let until = self.until;
        let client = self.client().await?;
        let list: Vec<T> = tokio::time::timeout_at(until, client.pages().all()).await??;
        // A list that cannot be kept is asked for again.
        let _ = keep(&folder, &key, &list, SystemTime::now());
        Ok(list)
    }

    async fn client(&mut self) -> Result<&Client> {
        if self.client.is_none() {
            let patience = patience();
            let mut builder = Client::builder("refmcp", env!("CARGO_PKG_VERSION"))
                .era(self.shared.protocol_version)
                .timeout(patience)
                .total_timeout(patience)
                .open_timeout(patience);
            if let Some(revision) = remembered(&self.server.name) {
                builder = builder.known_revision(&self.server.connector.name(), revision);
            }
            let connecting = builder.connect_to(self.server.connector.clone());
            self.client = Some(tokio::time::timeout_at(self.until, connecting).await??);
        }
        self.client.as_ref().context("it is connected")
    }
}

/// Names of arguments that have no value yet, or the values that the schema allows.
fn of_schema(schema: &JsonObject, given: &[String], last: &str) -> Candidates {
    let questions = all_questions(schema);
    let Some((key, _)) = last.split_once('=') else {
        let is_given = |name: &str| given.iter().any(|word| word.split(['=', ':', '.']).next() == Some(name));
        let missing = questions.iter().filter(|question| !is_given(&question.name));
        return Candidates::words(missing.map(|question| {
            let about = question.description.as_deref().unwrap_or(&question.expected);
            Candidate::new(format!("{}=", question.name), described(about)).open()
        }));
    };
    let Some(question) = questions.iter().find(|question| question.name == key) else {
        return Candidates::default();
    };
    let choices = match question.choices.as_slice() {
        [] if question.expected == "true or false" => vec!["false".to_owned(), "true".to_owned()],
        choices => choices.to_vec(),
    };
    Candidates::words(choices.into_iter().map(|choice| Candidate::new(format!("{key}={choice}"), "")))
}

/// The variables of a resource template as a schema.
fn template_schema(uri: &str) -> JsonObject {
    let arguments: Vec<_> = template_variables(uri)
        .into_iter()
        .map(|name| serde_json::from_value(serde_json::json!({"name": name})))
        .filter_map(Result::ok)
        .collect();
    prompt_schema(&arguments)
}
