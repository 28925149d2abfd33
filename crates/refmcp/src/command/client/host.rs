//! What refmcp does for servers: the user answers at the terminal, or a command does, or requests are declined.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use anyhow::Result;
use refmcp_client::model::{
    ContentBlock, CreateMessageParams, CreateMessageResult, ElicitAction, ElicitResult, JsonObject, Role,
    Root,
};
use refmcp_client::{Host, RpcError, redact};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::runtime::Handle;
use tokio::sync::Mutex;

use crate::args::{SharedOptions, UsageError, split_words};
use crate::arguments::{ArgumentInput, ValueSource, parse_arguments};
use crate::ui::ask::{ask_missing, ask_to_visit, fill_form};
use crate::ui::browser::open_url;
use crate::ui::progress::Bars;
use crate::ui::terminal::{AskError, Terminal, Wanted};
use crate::ui::text::one_line;

/// The person in front of the terminal, if there is one.
#[derive(Clone)]
pub(crate) struct Person {
    /// One question at a time.
    terminal: Option<Arc<Mutex<Terminal>>>,
    /// Told when a question has to wait for the terminal.
    on_waiting: Option<Arc<dyn Fn() + Send + Sync>>,
    /// What is taken off the terminal while something is asked.
    bars: Bars,
}

impl Person {
    pub(crate) fn new(shared: &SharedOptions, bars: &Bars) -> Self {
        let terminal = Terminal::open(shared.no_color).map(|terminal| Arc::new(Mutex::new(terminal)));
        Self { terminal, on_waiting: None, bars: bars.clone() }
    }

    /// No person, even where there is a terminal: for what must not ask.
    pub(crate) fn absent() -> Self {
        Self { terminal: None, on_waiting: None, bars: Bars::hidden() }
    }

    /// The same person, typing commands between the questions: ctrl-c gives up a question and nothing else.
    pub(crate) fn typing(
        shared: &SharedOptions,
        bars: &Bars,
        on_waiting: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        let terminal =
            Terminal::open(shared.no_color).map(|terminal| Arc::new(Mutex::new(terminal.by_keys())));
        Self { terminal, on_waiting: Some(Arc::new(on_waiting)), bars: bars.clone() }
    }

    /// Does something with the terminal while no question is asked, on this thread; questions wait.
    pub(crate) fn undisturbed<T>(&self, work: impl FnOnce() -> T) -> T {
        let _kept = self.terminal.as_ref().map(|terminal| terminal.blocking_lock());
        work()
    }

    pub(crate) fn is_there(&self) -> bool {
        self.terminal.is_some()
    }

    /// Asks, on a thread that may wait; one question at a time. `None` without a terminal. The question is taken off the terminal
    /// when this is dropped.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Terminal) -> Result<T, AskError> + Send + 'static,
    ) -> Option<Result<T, AskError>> {
        let person = self.clone();
        let (wanted, _withdraw) = Wanted::until_dropped();
        let asked = tokio::task::spawn_blocking(move || {
            person.ask_now(|terminal| terminal.ask_while(wanted, question))
        });
        // A question that panics was not answered.
        asked.await.unwrap_or(Some(Err(AskError::Ended)))
    }

    /// The same, on this thread, which is one of the runtime's for work that blocks.
    pub(crate) fn ask_now<T>(
        &self,
        question: impl FnOnce(&mut Terminal) -> Result<T, AskError>,
    ) -> Option<Result<T, AskError>> {
        let terminal = self.terminal.as_ref()?;
        let mut terminal = terminal.try_lock().unwrap_or_else(|_| {
            Handle::current().block_on(async {
                let mut turn = std::pin::pin!(terminal.lock());
                // The question waits first and is told of then: the line that is typed may end at once, and the next one has
                // to wait for the question.
                tokio::select! {
                    biased;
                    terminal = &mut turn => return terminal,
                    () = async { self.on_waiting.iter().for_each(|tell| tell()) } => {}
                }
                turn.await
            })
        });
        let _hidden = self.bars.hide();
        Some(question(&mut terminal))
    }

    /// The arguments that were typed; on a terminal, those that are missing are asked for.
    pub(crate) async fn arguments(&self, words: &ArgumentInput, schema: &JsonObject) -> Result<JsonObject> {
        let (words, schema, person) = (words.clone(), schema.clone(), self.clone());
        let reading = tokio::task::spawn_blocking(move || -> Result<JsonObject> {
            let mut parsed = parse_arguments(&words, &schema, &mut ValueSource::new(&mut std::io::stdin()));
            if parsed.lacks_only_required(&schema) {
                let asked = person.ask_now(|terminal| ask_missing(terminal, &schema, &mut parsed.arguments));
                if let Some(Err(error)) = asked {
                    return Err(UsageError::new(error.to_string()).into());
                }
            }
            parsed.finish(&schema).map_err(|errors| UsageError::new(errors.to_string()).into())
        });
        reading.await?
    }
}

/// What servers may ask for, as the options and the terminal allow.
pub(crate) fn host(shared: &SharedOptions, person: &Person, server: &str) -> Host {
    let mut host = Host::new();
    if !shared.roots.is_empty() || shared.roots_may_come {
        host = host.roots(shared.roots.iter().map(|path| root(path)));
    }
    if shared.shows_apps {
        host = host.shows_apps();
    }
    host = match (&shared.sampler, person.is_there()) {
        (Some(command), _) => {
            let command = command.clone();
            host.sampling(move |params| sample_by(command.clone(), params))
        }
        (None, true) => {
            let (person, server) = (person.clone(), server.to_owned());
            host.sampling(move |params| sample_by_hand(person.clone(), server.clone(), params))
        }
        (None, false) => host,
    };
    if !person.is_there() {
        return if shared.yes { answer_by_default(host, server, &person.bars) } else { host };
    }
    let (of_forms, for_forms) = (person.clone(), server.to_owned());
    let (of_pages, for_pages) = (person.clone(), server.to_owned());
    host.elicitation(move |params| {
        let (person, server) = (of_forms.clone(), for_forms.clone());
        async move {
            let answer = person.ask(move |terminal| fill_form(terminal, &server, &params)).await;
            answered(answer)
        }
    })
    .url_elicitation(move |params| {
        let (person, server) = (of_pages.clone(), for_pages.clone());
        async move {
            let (action, page) =
                answered(person.ask(move |terminal| ask_to_visit(terminal, &server, &params)).await)?;
            if let Some(page) = &page
                && let Err(error) = open_url(page)
            {
                tracing::warn!("the page was not opened, do so by hand: {page} ({error})");
            }
            Ok(ElicitResult::new(action))
        }
    })
}

fn answered<T>(answer: Option<Result<T, AskError>>) -> Result<T, RpcError> {
    match answer {
        Some(Ok(answer)) => Ok(answer),
        Some(Err(error)) => Err(RpcError::internal(error.to_string())),
        None => Err(RpcError::internal("the user cannot be asked")),
    }
}

/// A folder, as servers are told of it.
pub(crate) fn root(path: &Path) -> Root {
    let full = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let uri = url::Url::from_file_path(&full).map_or_else(|()| full.display().to_string(), String::from);
    let mut root = Root::new(uri);
    root.name = full.file_name().map(|name| name.to_string_lossy().into_owned());
    root
}

/// Lets a command play the model: the request comes in as JSON, what it writes is what the model says.
async fn sample_by(command: String, params: CreateMessageParams) -> Result<CreateMessageResult, RpcError> {
    let failed = |what: String| RpcError::internal(format!("the sampler failed: {what}"));
    let words = split_words(&command).map_err(|error| failed(error.to_string()))?;
    let Some((program, args)) = words.split_first() else { return Err(failed("it has no name".to_owned())) };
    let request = serde_json::to_vec(&params).map_err(|error| failed(error.to_string()))?;
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| failed(format!("{}: {error}", redact::word(program))))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A sampler that does not read its input says what it says without it.
        let _ = stdin.write_all(&request).await;
    }
    let output = child.wait_with_output().await.map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(output.status.to_string()));
    }
    let said = String::from_utf8_lossy(&output.stdout);
    Ok(serde_json::from_str(&said)
        .unwrap_or_else(|_| CreateMessageResult::text(program.as_str(), said.trim_end())))
}

/// Lets a person play the model.
async fn sample_by_hand(
    person: Person,
    server: String,
    params: CreateMessageParams,
) -> Result<CreateMessageResult, RpcError> {
    let answer = person.ask(move |terminal| {
        terminal.say_strong(&format!("The server {server} asks for an answer of your model:"))?;
        if let Some(system) = &params.system_prompt {
            terminal.say_faint(&format!("  system: {system}"))?;
        }
        for message in &params.messages {
            let role = if message.role == Role::User { "user" } else { "assistant" };
            for block in message.content.as_slice() {
                terminal.say(&format!("  {role}: {}", spoken(block)))?;
            }
        }
        match terminal.letter("Answer it? [yes, No = refuse]", &["yes", "no"], 'n')? {
            'y' => terminal.line("You are the model; what do you say?").map(Some),
            _ => Ok(None),
        }
    });
    match answered(answer.await)? {
        Some(text) => Ok(CreateMessageResult::text("a person", text)),
        None => Err(RpcError::new(-1, "the user refused the request for an answer of the model")),
    }
}

fn spoken(block: &ContentBlock) -> String {
    block.as_text().map_or_else(|| serde_json::to_string(block).unwrap_or_default(), str::to_owned)
}

/// Answers without a terminal where `--yes` was given: accepts forms with their defaults, declines forms that need more
/// and web pages, and says so on stderr.
fn answer_by_default(host: Host, server: &str, bars: &Bars) -> Host {
    let (forms, pages) = (Declining::new(server, bars), Declining::new(server, bars));
    host.elicitation(move |params| {
        let content = params.requested_schema.defaults();
        let result = match params.requested_schema.check(&content) {
            Ok(()) => ElicitResult::accept(content),
            Err(why) => forms.decline(
                &format!("the form {:?}", params.message),
                &format!("{why}, and --yes answers with defaults only"),
            ),
        };
        async { Ok(result) }
    })
    .url_elicitation(move |params| {
        let what = format!("the page {} ({:?})", params.url, params.message);
        let result = pages.decline(&what, "--yes opens no web pages; run it at a terminal");
        async { Ok(result) }
    })
}

struct Declining {
    server: String,
    bars: Bars,
}

impl Declining {
    fn new(server: &str, bars: &Bars) -> Self {
        Self { server: server.to_owned(), bars: bars.clone() }
    }

    fn decline(&self, what: &str, why: &str) -> ElicitResult {
        let line = format!("refmcp: declined {what} of {}: {why}", self.server);
        self.bars.say(&format!("{}\n", one_line(&line)));
        ElicitResult::new(ElicitAction::Decline)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_roots() {
        for (path, uri, name) in [("/a b/c/", "file:///a%20b/c", Some("c")), ("/", "file:///", None)] {
            let root = root(Path::new(path));
            assert_eq!((root.uri.as_str(), root.name.as_deref()), (uri, name));
        }
    }
}
