//! How a line may go on: from what the servers catalog, without asking them; and from what they answer when they are
//! asked, for a short time.

use std::path::Path;
use std::time::Duration;

use refmcp_client::model::{
    CompletionArgument, CompletionRef, JsonObject, LogLevel, PromptReference, ResourceTemplateReference,
};
use refmcp_client::redact;
use rustyline::completion::Pair;

use super::catalog::{self, Catalog, Catalogs};
use super::commands::names;
use super::servers::ServerRegistry;
use crate::args::{ListKind, split_words};
use crate::arguments::{all_fields, prompt_schema, template_schema};
use crate::completion::{Candidate, MAX_CANDIDATES, is_harmless, of_schema};

/// How long Tab waits for a server.
const COMPLETION_TIMEOUT: Duration = Duration::from_millis(500);

/// What could stand in place of the last word.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Suggestions {
    /// Where the word begins.
    pub(super) start: usize,
    pub(super) words: Vec<Candidate>,
    /// What to ask a server for besides.
    pub(super) ask: Option<Ask>,
    /// The beginning of a file's name, and what stands before it.
    pub(super) file: Option<(String, String)>,
}

/// A question for a server.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ask {
    pub(super) server: String,
    pub(super) of: CompletionRef,
    pub(super) argument: String,
    pub(super) prefix: String,
    /// What is known already.
    pub(super) context: Vec<(String, String)>,
}

/// How the line may go on at this place.
pub(super) async fn complete(line: &str, position: usize, registry: &ServerRegistry) -> (usize, Vec<Pair>) {
    let until = tokio::time::Instant::now() + COMPLETION_TIMEOUT;
    let catalogs = tokio::time::timeout_at(until, registry.catalogs()).await.unwrap_or_default();
    let mut found = suggest(line.get(..position).unwrap_or(line), &catalogs);
    if let Some(ask) = &found.ask {
        // A server that is slow or does not know has nothing to say.
        let values = tokio::time::timeout_at(until, values(ask, registry)).await.unwrap_or_default();
        let word = |value: String| Candidate::new(format!("{}={value}", ask.argument), "");
        found.words.extend(values.into_iter().map(word));
    }
    if let Some((before, prefix)) = &found.file {
        found.words.extend(files(before, prefix));
    }
    // What servers suggest is put onto the line and shown as it is, so nothing may be in it that does something.
    let words = found.words.into_iter().filter(|word| is_harmless(&word.text));
    (found.start, words.take(MAX_CANDIDATES).map(pair).collect())
}

/// What a server would complete an argument with.
pub(super) async fn values(ask: &Ask, registry: &ServerRegistry) -> Vec<String> {
    let Ok(server) = registry.named(&ask.server) else { return Vec::new() };
    let argument = CompletionArgument::new(&ask.argument, &ask.prefix);
    let context = ask.context.iter().cloned().collect();
    match server.client().complete(&ask.of, &argument, &context).await {
        Ok(result) => result.completion.values,
        Err(error) => {
            tracing::debug!("{} completes nothing: {error}", ask.server);
            Vec::new()
        }
    }
}

/// What is known to fit behind this, the line up to the cursor.
pub(super) fn suggest(typed: &str, catalogs: &Catalogs) -> Suggestions {
    let (words, start, partial) = cut(typed);
    let mut found = match words.split_first() {
        None => first(&partial, catalogs),
        Some((first, rest)) => further(first, rest, &partial, catalogs),
    };
    found.start = start;
    found.words.retain(|word| word.text.starts_with(&partial));
    found.words.dedup();
    found
}

/// The whole words, where the last one begins, and as much as there is of it.
fn cut(typed: &str) -> (Vec<String>, usize, String) {
    let mut start = typed.len();
    for (at, c) in typed.char_indices().rev() {
        let is_boundary = c.is_whitespace() && split_words(typed.get(..at).unwrap_or_default()).is_ok();
        if is_boundary {
            break;
        }
        start = at;
    }
    let (before, partial) = typed.split_at_checked(start).unwrap_or((typed, ""));
    let words = split_words(before).unwrap_or_default();
    let partial = [partial.to_owned(), format!("{partial}'"), format!("{partial}\"")]
        .iter()
        .find_map(|closed| split_words(closed).ok())
        .map(|words| words.concat());
    (words, start, partial.unwrap_or_default())
}

fn first(partial: &str, catalogs: &Catalogs) -> Suggestions {
    if partial.starts_with('/') {
        return closed(qualified(catalogs, catalog::prompts).map(|name| format!("/{name}")));
    }
    closed(names().into_iter().chain(qualified(catalogs, catalog::tools)))
}

fn further(first: &str, rest: &[String], partial: &str, catalogs: &Catalogs) -> Suggestions {
    let servers = || closed(catalogs.servers.iter().map(|(server, _)| server.clone()));
    if let Some(name) = first.strip_prefix('/') {
        return of_prompt(name, rest, partial, catalogs);
    }
    match (first, rest) {
        ("call", []) => closed(qualified(catalogs, catalog::tools)),
        ("call", [tool, given @ ..]) => of_tool(tool, given, partial, catalogs),
        ("prompt", []) => closed(qualified(catalogs, catalog::prompts)),
        ("prompt", [name, given @ ..]) => of_prompt(name, given, partial, catalogs),
        ("read", []) => {
            closed(qualified(catalogs, catalog::resources).chain(qualified(catalogs, template_names)))
        }
        ("read", [name, given @ ..]) => of_template(name, given, partial, catalogs),
        ("subscribe" | "unsubscribe", []) => closed(qualified(catalogs, catalog::resources)),
        ("level", []) => closed(LogLevel::ALL.iter().map(|level| level.as_str().to_owned())),
        ("list", []) => closed(ListKind::NAMES.map(str::to_owned).into_iter()),
        ("model", []) => {
            closed(catalogs.servers.iter().flat_map(|(_, catalog)| catalog.models.iter().cloned()))
        }
        (
            "tools" | "resources" | "templates" | "prompts" | "models" | "metadata" | "ping" | "info" | "use"
            | "disconnect",
            [],
        )
        | ("list", [_]) => servers(),
        ("connect", []) => {
            let more = catalogs.configured.iter().filter(|name| !catalogs.absent.contains(name));
            closed(catalogs.absent.iter().chain(more).cloned())
        }
        ("roots", _) => {
            Suggestions { file: Some((String::new(), partial.to_owned())), ..Suggestions::default() }
        }
        ("help" | "?", []) => closed(names().into_iter().chain(qualified(catalogs, catalog::tools))),
        (word, _) if names().iter().any(|command| command == word) => Suggestions::default(),
        (tool, given) => of_tool(tool, given, partial, catalogs),
    }
}

fn closed(words: impl Iterator<Item = String>) -> Suggestions {
    known(words.map(|text| Candidate::new(text, "")).collect())
}

fn known(words: Vec<Candidate>) -> Suggestions {
    Suggestions { words, ..Suggestions::default() }
}

fn template_names(catalog: &Catalog) -> Vec<&str> {
    catalog.templates.iter().map(|template| template.name.as_str()).collect()
}

/// The names that lead to one server each: alone where that is clear, with the server's name where there are several.
fn qualified(
    catalogs: &Catalogs,
    names: impl Fn(&Catalog) -> Vec<&str> + Copy,
) -> impl Iterator<Item = String> {
    let mut all = Vec::new();
    let several = catalogs.servers.len() > 1;
    for (server, catalog) in &catalogs.servers {
        for name in names(catalog) {
            if catalogs.find(name, names).is_ok_and(|(found, _)| found == *server) {
                all.push(name.to_owned());
            }
            if several {
                all.push(format!("{server}.{name}"));
            }
        }
    }
    all.into_iter()
}

fn of_tool(word: &str, given: &[String], partial: &str, catalogs: &Catalogs) -> Suggestions {
    let Ok((server, name)) = catalogs.find(word, catalog::tools) else { return Suggestions::default() };
    let tool =
        catalogs.of_server(&server).and_then(|catalog| catalog.tools.iter().find(|tool| tool.name == name));
    let Some(tool) = tool else { return Suggestions::default() };
    let file = |(key, value): (&str, &str)| Some((format!("{key}=@"), value.strip_prefix('@')?.to_owned()));
    match partial.split_once('=').and_then(file) {
        None => known(of_schema(&tool.input_schema, given, partial).words),
        file => Suggestions { file, ..Suggestions::default() },
    }
}

fn of_prompt(word: &str, given: &[String], partial: &str, catalogs: &Catalogs) -> Suggestions {
    let Ok((server, name)) = catalogs.find(word, catalog::prompts) else { return Suggestions::default() };
    let prompts = catalogs.of_server(&server).map(|catalog| catalog.prompts.iter()).into_iter();
    let prompt = prompts.flatten().find(|prompt| prompt.name == name);
    let schema = prompt_schema(prompt.and_then(|prompt| prompt.arguments.as_deref()).unwrap_or_default());
    asked_of_server(&schema, server, CompletionRef::Prompt(PromptReference::new(name)), given, partial)
}

fn of_template(word: &str, given: &[String], partial: &str, catalogs: &Catalogs) -> Suggestions {
    let Ok((server, name)) = catalogs.find(word, catalog::templates) else { return Suggestions::default() };
    let Some(template) = catalogs.of_server(&server).and_then(|catalog| catalog.template(&name)) else {
        return Suggestions::default();
    };
    let schema = template_schema(&template.uri_template);
    let of = CompletionRef::Resource(ResourceTemplateReference::new(&template.uri_template));
    asked_of_server(&schema, server, of, given, partial)
}

/// Names from what is known, values from the server.
fn asked_of_server(
    schema: &JsonObject,
    server: String,
    of: CompletionRef,
    given: &[String],
    partial: &str,
) -> Suggestions {
    let Some((key, value)) = partial.split_once('=') else {
        return known(of_schema(schema, given, partial).words);
    };
    if !all_fields(schema).iter().any(|field| field.name == key) {
        return Suggestions::default();
    }
    let pair = |word: &String| word.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
    let context = given.iter().filter_map(pair).collect();
    let ask = Ask { server, of, argument: key.to_owned(), prefix: value.to_owned(), context };
    Suggestions { ask: Some(ask), ..Suggestions::default() }
}

/// Files whose names begin like this.
fn files(before: &str, prefix: &str) -> Vec<Candidate> {
    let (folder, name) = prefix.rsplit_once('/').map_or(("", prefix), |(folder, name)| (folder, name));
    let shown = prefix.get(..prefix.len() - name.len()).unwrap_or_default();
    let place = match (folder, shown) {
        ("", "") => Path::new("."),
        ("", _) => Path::new("/"),
        (folder, _) => Path::new(folder),
    };
    // A folder that cannot be read has nothing to suggest.
    let Ok(entries) = std::fs::read_dir(place) else { return Vec::new() };
    let mut words: Vec<Candidate> = entries
        .flatten()
        .take(MAX_CANDIDATES)
        .filter_map(|entry| {
            let file = entry.file_name().into_string().ok()?;
            let is_wanted = file.starts_with(name) && (name.starts_with('.') || !file.starts_with('.'));
            let is_folder = entry.path().is_dir();
            let end = if is_folder { "/" } else { "" };
            let word = Candidate::new(format!("{before}{shown}{file}{end}"), "");
            is_wanted.then(|| if is_folder { word.open() } else { word })
        })
        .collect();
    words.sort_by(|one, other| one.text.cmp(&other.text));
    words
}

fn pair(word: Candidate) -> Pair {
    let quoted = redact::joined(&[&word.text]);
    let replacement = if word.is_open { quoted } else { format!("{quoted} ") };
    Pair { display: word.text, replacement }
}

#[cfg(test)]
mod tests;
