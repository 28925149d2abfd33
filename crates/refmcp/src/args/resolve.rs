//! From the words of a command to what they mean.

use std::collections::VecDeque;

use refmcp_client::redact;
use url::Url;

use super::client::{
    BridgeWords, CallWords, ClientWords, CompleteWords, ListWords, PromptWords, RawWords, ServerCommand,
    ShellWords, WatchWords,
};
use super::models::{self, ModelsWords};
use super::{
    BridgeListenOptions, BridgeSide, ClientCommand, CompletionReference, ListKind, SharedOptions, Target,
    UsageError, join_words,
};
use crate::arguments::ArgumentInput;
use crate::ui::suggest::nearest;

impl ClientWords {
    /// What the words mean.
    ///
    /// # Errors
    ///
    /// A word is missing, or one too many; the error says which.
    pub(super) fn resolve(self) -> Result<(ClientCommand, SharedOptions), UsageError> {
        match self {
            Self::List(words) => list(words),
            Self::Call(words) => call(words),
            Self::Read(words) => {
                let mut line = Line::new([words.target, words.uri], words.server);
                let target = line.target_before_uris()?;
                let uri = line.next("the URI of the resource")?;
                line.end()?;
                Ok((ClientCommand::Read { target, uri }, words.shared))
            }
            Self::Prompt(words) => prompt(words),
            Self::Complete(words) => complete(words),
            Self::Watch(words) => watch(words),
            Self::Info(words) => {
                let mut line = Line::new([words.target], words.server);
                let target = line.target()?;
                line.end()?;
                Ok((ClientCommand::Info { target }, words.shared))
            }
            Self::Models { words, list } => words.unwrap_or(ModelsWords::List(*list)).resolve(),
            Self::Metadata(words) => models::metadata(words),
            Self::Raw(words) => raw(words),
            Self::Shell(words) => shell(words),
            Self::Bridge(words) => bridge(words),
            Self::Auth { words } => words.resolve(),
        }
    }
}

/// The words that are no options, in their order, and the command behind `--`.
pub(super) struct Line {
    words: VecDeque<String>,
    command: Vec<String>,
}

impl Line {
    pub(super) fn new(words: impl IntoIterator<Item = Option<String>>, server: ServerCommand) -> Self {
        Self { words: words.into_iter().flatten().collect(), command: server.command }
    }

    /// The command behind `--`, or else what the next word names.
    pub(super) fn target(&mut self) -> Result<Target, UsageError> {
        if !self.command.is_empty() {
            return Ok(Target::Command(std::mem::take(&mut self.command)));
        }
        Target::parse(&self.next("the target: a URL, a configured name, or a command after `--`")?)
    }

    /// The same, where no other word can be an address: one that is must have been meant as the target.
    pub(super) fn only_target(&mut self) -> Result<Target, UsageError> {
        if let (Some(first), Some(second)) = (self.words.front(), self.words.get(1))
            && self.command.is_empty()
            && !Target::is_url(first)
            && Target::is_url(second)
        {
            return Err(swapped(first, second));
        }
        match self.words.front() {
            Some(word) if !self.command.is_empty() && Target::is_url(word) => Err(UsageError::new(format!(
                "there are two targets: {} and the command after `--`",
                redact::word(word)
            ))),
            _ => self.target(),
        }
    }

    /// The same, where the words behind it are addresses of resources: one of a scheme that no server is reached by
    /// cannot be the target.
    fn target_before_uris(&mut self) -> Result<Target, UsageError> {
        if let (Some(first), Some(second)) = (self.words.front(), self.words.get(1))
            && self.command.is_empty()
            && first.contains("://")
            && !Target::is_url(first)
            && Target::is_url(second)
        {
            return Err(swapped(first, second));
        }
        self.target()
    }

    pub(super) fn next(&mut self, what: &str) -> Result<String, UsageError> {
        self.words.pop_front().ok_or_else(|| UsageError::new(format!("missing: {what}")))
    }

    pub(super) fn end(self) -> Result<(), UsageError> {
        match self.words.front() {
            None => Ok(()),
            Some(word) => Err(UsageError::new(format!("one word too many: {:?}", redact::word(word)))),
        }
    }
}

/// Says that the target comes first.
fn swapped(first: &str, second: &str) -> UsageError {
    let (first, second) = (redact::word(first), redact::word(second));
    let right = join_words(&[second.clone(), first.clone()]);
    UsageError::new(format!("the target comes first: write {right} in place of {first:?} {second:?}"))
}

fn list(words: ListWords) -> Result<(ClientCommand, SharedOptions), UsageError> {
    let named = [words.what, words.target].into_iter();
    let mut line = Line::new(named.chain(words.names.into_iter().map(Some)), words.server);
    let mut what = match line.words.front().and_then(|word| ListKind::parse(word)) {
        Some(what) => {
            line.words.pop_front();
            what
        }
        None if line.words.len() > 1 || (line.words.len() == 1 && !line.command.is_empty()) => {
            let word = line.next("what to list")?;
            if !Target::is_url(&word) {
                let kinds = "tools, resources, templates, prompts, models or all";
                let names = ["tools", "resources", "templates", "prompts", "models", "all"];
                let near = nearest(&word, &names).map(|near| format!("; did you mean {near}?"));
                let (word, near) = (redact::word(&word), near.unwrap_or_default());
                return Err(UsageError::new(format!("cannot list {word:?}: expected {kinds}{near}")));
            }
            line.words.push_front(word);
            ListKind::All
        }
        None => ListKind::All,
    };
    let target = line.only_target()?;
    // `list URL tools` is as clear as `list tools URL`.
    if what == ListKind::All
        && let Some(kind) = line.words.front().and_then(|word| ListKind::parse(word))
    {
        line.words.pop_front();
        what = kind;
    }
    if what == ListKind::All && line.words.front().is_some_and(|word| Target::is_url(word)) {
        line.end()?;
        return Err(UsageError::new("there are two targets"));
    }
    let names: Vec<String> = line.words.into();
    let command = match names.is_empty() {
        true => ClientCommand::List { target, what },
        false => ClientCommand::Show { target, what, names },
    };
    Ok((command, words.shared))
}

fn call(words: CallWords) -> Result<(ClientCommand, SharedOptions), UsageError> {
    let named = [words.target, words.tool].into_iter();
    let mut line = Line::new(named.chain(words.arguments.into_iter().map(Some)), words.server);
    let target = line.only_target()?;
    let tool = line.next("the tool's name")?;
    let arguments = ArgumentInput { words: line.words.into(), json: words.json };
    Ok((ClientCommand::Call { target, tool, arguments }, words.shared))
}

fn prompt(words: PromptWords) -> Result<(ClientCommand, SharedOptions), UsageError> {
    let named = [words.target, words.name].into_iter();
    let mut line = Line::new(named.chain(words.arguments.into_iter().map(Some)), words.server);
    let target = line.only_target()?;
    let name = line.next("the prompt's name")?;
    let arguments = ArgumentInput { words: line.words.into(), json: words.json };
    Ok((ClientCommand::Prompt { target, name, arguments }, words.shared))
}

fn complete(words: CompleteWords) -> Result<(ClientCommand, SharedOptions), UsageError> {
    let of = match (words.prompt, words.template) {
        (Some(name), None) => CompletionReference::Prompt(name),
        (None, Some(uri)) => CompletionReference::Template(uri),
        _ => {
            return Err(UsageError::new("say what the argument belongs to: --prompt NAME or --template URI"));
        }
    };
    let mut line = Line::new([words.target, words.argument], words.server);
    let target = line.only_target()?;
    let word = line.next("the argument: NAME=PREFIX, or NAME= for any value")?;
    let Some((argument, prefix)) = word.split_once('=').filter(|(name, _)| !name.is_empty()) else {
        return Err(UsageError::new(format!("{word:?} is no NAME=PREFIX; for any value write {word}=")));
    };
    line.end()?;
    let (argument, prefix) = (argument.to_owned(), prefix.to_owned());
    Ok((ClientCommand::Complete { target, of, argument, prefix, context: words.context }, words.shared))
}

fn watch(words: WatchWords) -> Result<(ClientCommand, SharedOptions), UsageError> {
    let uris = words.uris.into_iter().map(Some);
    let mut line = Line::new([words.target].into_iter().chain(uris), words.server);
    let target = line.target_before_uris()?;
    Ok((ClientCommand::Watch { target, uris: line.words.into() }, words.shared))
}

fn raw(words: RawWords) -> Result<(ClientCommand, SharedOptions), UsageError> {
    let mut line = Line::new([words.target, words.method, words.params], words.server);
    let target = line.only_target()?;
    let method = line.next("the request's method")?;
    let params = line.words.pop_front();
    line.end()?;
    Ok((ClientCommand::Raw { target, method, params }, words.shared))
}

fn shell(words: ShellWords) -> Result<(ClientCommand, SharedOptions), UsageError> {
    let mut targets = words.targets.iter().map(|word| Target::parse(word)).collect::<Result<Vec<_>, _>>()?;
    if !words.server.command.is_empty() {
        targets.push(Target::Command(words.server.command));
    }
    Ok((ClientCommand::Shell { targets }, words.shared))
}

fn bridge(words: BridgeWords) -> Result<(ClientCommand, SharedOptions), UsageError> {
    let from = match words.from.as_str() {
        "stdio" if words.door == BridgeListenOptions::default() => BridgeSide::Stdio,
        "stdio" => {
            let what = "nobody can come over a network, so it takes no option for those who do";
            return Err(UsageError::new(format!("--from stdio: {what}")));
        }
        address => match Target::parse(address)? {
            Target::Url { url, transport } => {
                check_certificate(&url, &words.door)?;
                BridgeSide::Listen { url, transport, door: words.door }
            }
            Target::Command(_) | Target::Named(_) => {
                let what = "expected stdio, or an address to listen on such as http://127.0.0.1:3000/mcp";
                return Err(UsageError::new(format!("--from {}: {what}", redact::word(address))));
            }
        },
    };
    let to = match (words.to.as_deref(), words.server.command) {
        (None | Some("stdio"), command) if !command.is_empty() => Target::Command(command),
        (None, _) => return Err(UsageError::new("missing: --to URL, or a command after `--`")),
        (Some("stdio"), _) => {
            return Err(UsageError::new("--to stdio needs the server's command after `--`"));
        }
        (Some(word), command) if command.is_empty() => Target::parse(word)?,
        (Some(word), _) => {
            return Err(UsageError::new(format!(
                "there are two servers: {} and the command after `--`",
                redact::word(word)
            )));
        }
    };
    Ok((ClientCommand::Bridge { from, to }, words.shared))
}

/// Whether there is a certificate where one is needed, and only there.
fn check_certificate(from: &Url, door: &BridgeListenOptions) -> Result<(), UsageError> {
    let secure = matches!(from.scheme(), "https" | "wss");
    let shown = redact::url(from.as_str());
    match (secure, door.tls_cert.is_some()) {
        (true, false) => {
            Err(UsageError::new(format!("--from {shown}: needs --tls-cert FILE and --tls-key FILE")))
        }
        (false, true) => {
            let with = if from.scheme() == "ws" { "wss" } else { "https" };
            Err(UsageError::new(format!("--from {shown}: has no use for a certificate; {with}:// has")))
        }
        _ => Ok(()),
    }
}
