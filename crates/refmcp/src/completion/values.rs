//! Values that configuration files and servers know: names of servers, tools, prompts and arguments, URIs of resources. A
//! server that has to be started is asked only if its start is allowed for good, no login is begun, and a server that does
//! not answer at once is given up.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use clap::ValueEnum as _;
use refmcp_client::model::{
    CompletionArgument, CompletionRef, JsonObject, Prompt, PromptReference, Resource, ResourceTemplate,
    ResourceTemplateReference, Tool,
};
use refmcp_client::{Client, Listable, ListedSkill};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::position::{Position, summary};
use super::shells::TypedLine;
use super::{Candidate, Candidates, timeout};
use crate::args::{ListKind, SharedOptions, Target, parse_shared_options, sha256_hex};
use crate::arguments::{ArgumentField, all_fields, prompt_schema, template_schema};
use crate::command::client::models::ModelList;
use crate::command::client::{Person, Server, Servers, remembered};
use crate::config;
use crate::store::StateFolder;
use crate::store::cache::LISTS;
use crate::ui::progress::Bars;
use crate::ui::redact;

/// How long a server has to end.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(200);

/// What to ask for.
pub(super) enum Query<'a> {
    /// The names in a list.
    Names(ListKind),
    /// Names and values of a tool's arguments.
    ToolArguments { tool: &'a str, given: &'a [String], last: &'a str },
    /// Names and values of the arguments of a prompt, or of the variables of a resource template.
    Arguments { of: &'a CompletionRef, given: &'a [String], last: &'a str },
}

/// Candidates from the server that `target` names; none where it is not to be asked.
pub(super) fn ask(options: &[(&str, String)], target: &str, query: &Query<'_>) -> Candidates {
    let found = Target::parse(target).map_err(Into::into).and_then(|target| {
        let shared = parse_shared_options(options).context("the options are not understood")?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let found = runtime.block_on(ServerQuery::answer(&target, &shared, query));
        // What still runs is given up with the process.
        runtime.shutdown_background();
        found
    });
    found.unwrap_or_default()
}

/// A server that may be asked, connected when it has to be.
struct ServerQuery<'a> {
    shared: &'a SharedOptions,
    server: Server,
    until: Instant,
    key: String,
    client: Option<Client>,
}

impl<'a> ServerQuery<'a> {
    async fn answer(target: &Target, shared: &'a SharedOptions, query: &Query<'_>) -> Result<Candidates> {
        let until = Instant::now() + timeout();
        let (person, bars) = (Person::absent(), Bars::hidden().saying(|_| ()));
        let servers = Servers::new(shared, &person)?.beside(&bars);
        let server = tokio::time::timeout_at(until, servers.find(target)).await??;
        let folder = std::env::current_dir().unwrap_or_default();
        // All that decides which server this is, and what it lists.
        let key = format!(
            "{:?}",
            (
                target,
                server.connector.name(),
                &folder,
                &shared.config,
                &shared.headers,
                &shared.env,
                &shared.protocol_version
            )
        );
        let mut asked = Self { shared, server, until, key, client: None };
        let found = asked.candidates(query).await;
        if let Some(client) = &asked.client {
            // One that does not end in time is ended with the process.
            let _ = tokio::time::timeout(CLOSE_TIMEOUT, client.close()).await;
        }
        found
    }

    async fn candidates(&mut self, query: &Query<'_>) -> Result<Candidates> {
        Ok(match query {
            Query::Names(ListKind::Tools) => {
                named(self.listed().await?, |tool: Tool| (tool.name, tool.description.unwrap_or_default()))
            }
            Query::Names(ListKind::Prompts) => named(self.listed().await?, |prompt: Prompt| {
                (prompt.name, prompt.description.unwrap_or_default())
            }),
            Query::Names(ListKind::Resources) => {
                named(self.listed().await?, |resource: Resource| (resource.uri, resource.name))
            }
            Query::Names(ListKind::Templates) => named(self.listed().await?, |template: ResourceTemplate| {
                (template.uri_template, template.name)
            }),
            Query::Names(ListKind::Skills) => {
                let skills = self.cached("skills/list", async |client: &Client| {
                    let listed = client.pages::<ListedSkill>().all().await?;
                    Ok(listed.into_iter().map(|skill| (skill.uri, skill.name)).collect::<Vec<_>>())
                });
                named(skills.await?, |skill| skill)
            }
            Query::Names(ListKind::Models) => {
                let models = self.cached("models/list", async |client: &Client| {
                    let request = client.raw("models/list", JsonObject::new());
                    Ok(request.read_as::<ModelList>().await?.models)
                });
                named(models.await?, |model| (model.name, model.description.unwrap_or_default()))
            }
            Query::Names(ListKind::All) => Candidates::default(),
            Query::ToolArguments { tool, given, last } => {
                let tools: Vec<Tool> = self.listed().await?;
                let tool = tools.iter().find(|known| known.name == *tool).context("no such tool")?;
                of_schema(&tool.input_schema, given, last)
            }
            Query::Arguments { of, given, last } => self.arguments(of, given, last).await?,
        })
    }

    /// The arguments of a prompt or a template: names from the lists, values from the server.
    async fn arguments(&mut self, of: &CompletionRef, given: &[String], last: &str) -> Result<Candidates> {
        let schema = match of {
            CompletionRef::Prompt(of) => {
                let prompts: Vec<Prompt> = self.listed().await?;
                let prompt =
                    prompts.into_iter().find(|prompt| prompt.name == of.name).context("no such prompt")?;
                prompt_schema(prompt.arguments.as_deref().unwrap_or_default())
            }
            CompletionRef::Resource(of) => template_schema(&of.uri),
        };
        let Some((name, value)) = last.split_once('=') else { return Ok(of_schema(&schema, given, last)) };
        let pair =
            |word: &String| word.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
        let context: BTreeMap<String, String> = given.iter().filter_map(pair).collect();
        let argument = CompletionArgument::new(name, value);
        let until = self.until;
        let client = self.client().await?;
        let result = tokio::time::timeout_at(until, client.complete(of, &argument, &context)).await??;
        let values = result.completion.values.into_iter();
        Ok(Candidates::words(values.map(|value| Candidate::new(format!("{name}={value}"), ""))))
    }

    /// A list of the server.
    async fn listed<T: Listable + Serialize + DeserializeOwned>(&mut self) -> Result<Vec<T>> {
        self.cached(T::METHOD.name(), async |client: &Client| Ok(client.pages().all().await?)).await
    }

    /// What a method lists, as it was a short while ago or as it is now.
    async fn cached<T: Serialize + DeserializeOwned>(
        &mut self,
        method: &str,
        fetch: impl AsyncFnOnce(&Client) -> Result<Vec<T>>,
    ) -> Result<Vec<T>> {
        let folder = StateFolder::from_env()?;
        // All that decides which server it is may hold secrets.
        let key = sha256_hex(format!("{method}\n{}", self.key).as_bytes());
        if let Some(list) = LISTS.get(&folder, &key, SystemTime::now()) {
            return Ok(list);
        }
        let until = self.until;
        let client = self.client().await?;
        let list: Vec<T> = tokio::time::timeout_at(until, fetch(client)).await??;
        // A list that is not cached is asked for again.
        let _ = LISTS.put(&folder, &key, &list, SystemTime::now());
        Ok(list)
    }

    async fn client(&mut self) -> Result<&Client> {
        if self.client.is_none() {
            let timeout = timeout();
            let mut builder = Client::builder("refmcp", env!("CARGO_PKG_VERSION"))
                .version_policy(self.shared.protocol_version)
                .timeout(timeout)
                .total_timeout(timeout)
                .open_timeout(timeout);
            if let Some(revision) = remembered(&self.server.name) {
                builder = builder.known_revision(&self.server.connector.name(), revision);
            }
            let connecting = builder.connect_to(self.server.connector.clone());
            self.client = Some(tokio::time::timeout_at(self.until, connecting).await??);
        }
        self.client.as_ref().context("it is connected")
    }
}

fn named<T>(items: Vec<T>, name: impl Fn(T) -> (String, String)) -> Candidates {
    let named = items.into_iter().map(name);
    Candidates::words(named.map(|(name, description)| Candidate::new(name, summary(&description))))
}

/// Names of arguments that have no value yet, or the values that the schema allows.
pub(crate) fn of_schema(schema: &JsonObject, given: &[String], last: &str) -> Candidates {
    let fields = all_fields(schema);
    let Some((key, _)) = last.split_once('=') else {
        let is_given = |name: &str| given.iter().any(|word| word.split(['=', ':', '.']).next() == Some(name));
        let missing = fields.iter().filter(|field| !is_given(&field.name));
        return Candidates::words(missing.map(|field| {
            let about = field.description.as_deref().unwrap_or(&field.expected);
            Candidate::new(format!("{}=", field.name), summary(about)).open()
        }));
    };
    let field = fields.iter().find(|field| field.name == key);
    let choices = field.map(ArgumentField::suggestions).unwrap_or_default();
    Candidates::words(choices.into_iter().map(|choice| Candidate::new(format!("{key}={choice}"), "")))
}

/// Whether values of an option come from files or servers.
pub(super) fn is_known(option: &str) -> bool {
    matches!(option, "model" | "prompt" | "template" | "to" | "tool")
}

/// Candidates from files and servers; `None` where the definition of the command line says it all.
pub(super) fn candidates(position: &Position<'_>, line: &TypedLine) -> Option<Candidates> {
    let last = line.last.as_str();
    if let Some((option, value)) = position.valued(last) {
        let prefix = last.get(..last.len() - value.len()).unwrap_or_default();
        return Some(option_values(position, option)?.after(prefix));
    }
    let given = position.positionals.as_slice();
    let targets = || Some(servers(position, last));
    let asked = |target: &String, question: Query<'_>| Some(ask(&position.values, target, &question));
    let names = |target: &String, kind| asked(target, Query::Names(kind));
    match (position.path.as_slice(), given) {
        (["list"], []) => {
            let mut found = servers(position, last);
            found.words.splice(0..0, ListKind::NAMES.map(|kind| Candidate::new(kind, "")));
            Some(found)
        }
        (["list"], [kind]) if ListKind::from_str(kind, false).is_ok() => targets(),
        (["list"], [kind, target, ..]) => names(target, ListKind::from_str(kind, false).ok()?),
        (["models"], []) => {
            let mut found = position.declared();
            found.words.extend(servers(position, last).words);
            Some(found)
        }
        (
            ["models", "list" | "select"] | ["apps", "list" | "show"] | ["skills" | "task", _] | ["metadata"],
            [],
        ) => targets(),
        (["skills", "show" | "pull"], [target]) | (["skills", "verify"], [target, ..]) => {
            names(target, ListKind::Skills)
        }
        (["call" | "read" | "prompt" | "complete" | "watch" | "info" | "raw" | "check"], [])
        | (["replay"], [_])
        | (["shell"], _)
        | (["auth", "login" | "status" | "logout"] | ["trust", "allow" | "disable" | "revoke"], []) => {
            targets()
        }
        (["models", "select"], [target]) => names(target, ListKind::Models),
        (["call"], [target]) => names(target, ListKind::Tools),
        (["call"], [target, tool, given @ ..]) => asked(target, Query::ToolArguments { tool, given, last }),
        (["read"], [target]) | (["apps", "show"], [target]) | (["watch"], [target, ..]) => {
            names(target, ListKind::Resources)
        }
        (["prompt"], [target]) => names(target, ListKind::Prompts),
        (["prompt"], [target, name, given @ ..]) => {
            let of = CompletionRef::Prompt(PromptReference::new(name));
            asked(target, Query::Arguments { of: &of, given, last })
        }
        (["complete"], [target]) => {
            let of = match position.value("prompt") {
                Some(name) => CompletionRef::Prompt(PromptReference::new(name)),
                None => CompletionRef::Resource(ResourceTemplateReference::new(position.value("template")?)),
            };
            asked(target, Query::Arguments { of: &of, given: &[], last })
        }
        (["task", _], _)
        | (["list" | "read" | "complete" | "info" | "raw" | "check"], _)
        | (["replay"], [_, _, ..]) => Some(Candidates::default()),
        _ => None,
    }
}

fn option_values(position: &Position<'_>, option: &str) -> Option<Candidates> {
    // The server may be named later on the line, and then it is not known yet.
    let names = |kind| match position.positionals.first() {
        Some(target) => ask(&position.values, target, &Query::Names(kind)),
        None => Candidates::default(),
    };
    Some(match (position.path.as_slice(), option) {
        (["complete"], "prompt") => names(ListKind::Prompts),
        (["complete"], "template") => names(ListKind::Templates),
        (_, "model") => names(ListKind::Models),
        (["trust", _], "tool") => names(ListKind::Tools),
        (["bridge"], "to") => servers(position, ""),
        _ => return Some(Candidates::default()),
    })
}

/// The servers that the usual configuration files name, or the one of `--config`. Nothing is started.
fn servers(position: &Position<'_>, last: &str) -> Candidates {
    // A URL is not the beginning of a name.
    if last.contains("://") {
        return Candidates::default();
    }
    let known = config::read_named(position.value("config").map(Path::new));
    let usable = known.servers.iter().filter(|entry| !entry.disabled);
    Candidates::words(
        usable.map(|entry| Candidate::new(&entry.name, summary(&redact::launch(&entry.launch)))),
    )
}
