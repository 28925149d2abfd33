//! What the positionals of a command mean, and which command they make.

use std::collections::VecDeque;
use std::mem::take;

use clap::ValueEnum as _;
use refmcp_client::redact;
use refmcp_proto::model::{CompletionRef, PromptReference, ResourceTemplateReference};
use url::Url;

use super::{
    AppsArgs, BridgeArgs, BridgeListenOptions, BridgeSide, CheckArgs, ClientArgs, ClientCommand,
    ConnectionArgs, ListArgs, ListKind, ModelsArgs, OutputFormat, ReplayArgs, ServerArgs, ServerStderr,
    SessionCommand, SharedOptions, ShellArgs, SkillsArgs, SkillsCommand, TaskArgs, TaskCommand, TaskIdArgs,
};
use crate::args::{Target, UsageError, usage};
use crate::arguments::ArgumentInput;
use crate::ui::suggest::nearest;

impl ClientArgs {
    /// The command that the arguments make.
    ///
    /// # Errors
    ///
    /// A positional is missing, or one too many; the error says which.
    pub(in crate::args) fn resolve(self) -> Result<(ClientCommand, SharedOptions), UsageError> {
        match self {
            Self::List(args) => list(args),
            Self::Call(args) => {
                let (mut words, args) =
                    args.split(|args| args.tool.take().into_iter().chain(take(&mut args.arguments)));
                let target = words.only_target()?;
                let tool = words.next("the tool's name")?;
                let arguments = ArgumentInput { words: words.rest(), json: args.json.json };
                let command = if args.task || args.detach {
                    SessionCommand::CallAsTask { tool, arguments, is_detached: args.detach }
                } else {
                    SessionCommand::Call { tool, arguments }
                };
                words.finish(target, command)
            }
            Self::Task { command } => command.resolve(),
            Self::Read(args) => {
                let (mut words, _) = args.split(|args| args.uri.take());
                let target = words.target_before_uris()?;
                let uri = words.next("the URI of the resource")?;
                words.finish(target, SessionCommand::Read { uri })
            }
            Self::Prompt(args) => {
                let (mut words, args) =
                    args.split(|args| args.name.take().into_iter().chain(take(&mut args.arguments)));
                let target = words.only_target()?;
                let name = words.next("the prompt's name")?;
                let arguments = ArgumentInput { words: words.rest(), json: args.json.json };
                words.finish(target, SessionCommand::Prompt { name, arguments })
            }
            Self::Complete(args) => {
                let (mut words, args) = args.split(|args| args.argument.take());
                let of = match (args.reference.prompt, args.reference.template) {
                    (Some(name), None) => CompletionRef::Prompt(PromptReference::new(name)),
                    (None, Some(uri)) => CompletionRef::Resource(ResourceTemplateReference::new(uri)),
                    _ => return Err(UsageError::new("expected one of --prompt NAME and --template URI")),
                };
                let target = words.only_target()?;
                let word = words.next("the argument: NAME=PREFIX, or NAME= for any value")?;
                let Some((argument, prefix)) = word.split_once('=').filter(|(name, _)| !name.is_empty())
                else {
                    return Err(usage!("{word:?} is no NAME=PREFIX; for any value write {word}="));
                };
                let (argument, prefix) = (argument.to_owned(), prefix.to_owned());
                let context = args.context;
                words.finish(target, SessionCommand::Complete { of, argument, prefix, context })
            }
            Self::Watch(args) => {
                let (mut words, _) = args.split(|args| take(&mut args.uris));
                let target = words.target_before_uris()?;
                let uris = words.rest();
                words.finish(target, SessionCommand::Watch { uris })
            }
            Self::Info(args) => args.resolve(SessionCommand::Info),
            Self::Metadata(args) => args.resolve(SessionCommand::Metadata),
            Self::Models { command, list } => match command.unwrap_or(ModelsArgs::List(*list)) {
                ModelsArgs::List(args) => {
                    args.resolve(SessionCommand::List { what: ListKind::Models, names: Vec::new() })
                }
                ModelsArgs::Select(args) => {
                    let (mut words, _) = args.split(|args| args.name.take());
                    let target = words.only_target()?;
                    let name = words.next("the model's name")?;
                    words.finish(target, SessionCommand::SelectModel { name })
                }
            },
            Self::Skills { command } => skills(command),
            Self::Apps { command } => {
                let (command, mut shared) = match command {
                    AppsArgs::List(args) => args.resolve(SessionCommand::ListApps)?,
                    AppsArgs::Show(args) => {
                        let (mut words, _) = args.split(|args| args.app.take());
                        let target = words.only_target()?;
                        let app = words.next("the URI of the app, or a tool that it shows")?;
                        words.finish(target, SessionCommand::ShowApp { app })?
                    }
                };
                shared.shows_apps = true;
                Ok((command, shared))
            }
            Self::Raw(args) => {
                let (mut words, _) =
                    args.split(|args| args.method.take().into_iter().chain(args.params.take()));
                let target = words.only_target()?;
                let method = words.next("the request's method")?;
                let params = words.words.pop_front();
                words.finish(target, SessionCommand::Raw { method, params })
            }
            Self::Check(args) => {
                let CheckArgs { target, options, command, mut shared } = *args;
                options.check()?;
                shared.output =
                    if options.output.is_json() { OutputFormat::Json } else { OutputFormat::Text };
                let mut words = Positionals { words: target.into_iter().collect(), command, shared };
                let target = words.only_target()?;
                words.finish_with(ClientCommand::Check(target, Box::new(options)))
            }
            Self::Replay(args) => {
                let ReplayArgs { file, target, options, command, mut shared } = *args;
                shared.output =
                    if options.output.is_json() { OutputFormat::Json } else { OutputFormat::Text };
                let is_served = target.is_none() && command.is_empty();
                let mut words = Positionals { words: target.into_iter().collect(), command, shared };
                let target = if is_served { None } else { Some(words.only_target()?) };
                let using = options.resolve(target)?;
                words.finish_with(ClientCommand::Replay { file, using, options: Box::new(options) })
            }
            Self::Shell(args) => shell(args),
            Self::Bridge(args) => bridge(args),
            Self::Auth { command } => command.resolve(),
        }
    }
}

impl TaskArgs {
    fn resolve(self) -> Result<(ClientCommand, SharedOptions), UsageError> {
        match self {
            Self::List(args) => args.resolve(SessionCommand::Task(TaskCommand::List)),
            Self::Get(args) => args.resolve_task(TaskCommand::Get),
            Self::Result(args) => args.resolve_task(TaskCommand::Result),
            Self::Cancel(args) => args.resolve_task(TaskCommand::Cancel),
            Self::Watch(args) => args.resolve_task(TaskCommand::Watch),
        }
    }
}

impl ServerArgs<TaskIdArgs> {
    fn resolve_task(
        self,
        command: fn(String) -> TaskCommand,
    ) -> Result<(ClientCommand, SharedOptions), UsageError> {
        let (mut words, _) = self.split(|args| args.id.take());
        let target = words.only_target()?;
        let id = words.next("the task's id")?;
        words.finish(target, SessionCommand::Task(command(id)))
    }
}

impl<P: clap::Args> ServerArgs<P> {
    /// The positionals in their order, those of `P` taken out of it, and what is left of `P`.
    fn split<I: IntoIterator<Item = String>>(mut self, own: impl FnOnce(&mut P) -> I) -> (Positionals, P) {
        let words = self.target.into_iter().chain(own(&mut self.positionals));
        (Positionals::new(words, self.connection), self.positionals)
    }
}

impl ServerArgs {
    fn resolve(self, command: SessionCommand) -> Result<(ClientCommand, SharedOptions), UsageError> {
        let (mut words, _) = self.split(|_| None);
        let target = words.target()?;
        words.finish(target, command)
    }
}

/// The positionals in their order, and the command after `--`.
struct Positionals {
    words: VecDeque<String>,
    command: Vec<String>,
    shared: SharedOptions,
}

impl Positionals {
    fn new(words: impl IntoIterator<Item = String>, connection: ConnectionArgs) -> Self {
        let ConnectionArgs { command, shared } = connection;
        Self { words: words.into_iter().collect(), command, shared: shared.resolve() }
    }

    /// The command after `--`, or else the target that the next positional names.
    fn target(&mut self) -> Result<Target, UsageError> {
        if !self.command.is_empty() {
            return Ok(Target::Command(take(&mut self.command)));
        }
        Target::parse(&self.next("the target: a URL, a configured name, or a command after `--`")?)
    }

    /// The same, where no other positional can be a URL: one that is must have been meant as the target.
    fn only_target(&mut self) -> Result<Target, UsageError> {
        self.check_order(|_| true)?;
        match self.words.front() {
            Some(word) if !self.command.is_empty() && Target::is_url(word) => {
                Err(usage!("there are two targets: {} and the command after `--`", redact::word(word)))
            }
            _ => self.target(),
        }
    }

    /// The same, where the other positionals are URIs of resources: one of a scheme that no server is reached by
    /// cannot be the target.
    fn target_before_uris(&mut self) -> Result<Target, UsageError> {
        self.check_order(|first| first.contains("://"))?;
        self.target()
    }

    /// Whether the target comes first, where the first positional cannot be the target and another one is a URL.
    fn check_order(&self, is_other: impl Fn(&str) -> bool) -> Result<(), UsageError> {
        let Some(first) = self.words.front().filter(|first| is_other(first) && !Target::is_url(first)) else {
            return Ok(());
        };
        let is_target = |word: &&String| Target::is_url(word);
        let Some(target) = self.words.iter().find(is_target).filter(|_| self.command.is_empty()) else {
            return Ok(());
        };
        let target = redact::joined(&[redact::word(target)]);
        Err(usage!("the target comes first: write {target} before {:?}", redact::word(first)))
    }

    fn next(&mut self, what: &str) -> Result<String, UsageError> {
        self.words.pop_front().ok_or_else(|| usage!("missing: {what}"))
    }

    /// All positionals that are left.
    fn rest(&mut self) -> Vec<String> {
        self.words.drain(..).collect()
    }

    /// What to list, where the next positional says it.
    fn list_kind(&mut self) -> Option<ListKind> {
        let kind = ListKind::from_str(self.words.front()?, false).ok()?;
        self.words.pop_front();
        Some(kind)
    }

    /// The command with its options, if no positional is left.
    fn finish(
        self,
        target: Target,
        command: SessionCommand,
    ) -> Result<(ClientCommand, SharedOptions), UsageError> {
        self.finish_with(ClientCommand::InSession(target, command))
    }

    fn finish_with(self, command: ClientCommand) -> Result<(ClientCommand, SharedOptions), UsageError> {
        match self.words.front() {
            None => Ok((command, self.shared)),
            Some(word) => Err(usage!("one word too many: {:?}", redact::word(word))),
        }
    }
}

fn list(args: ListArgs) -> Result<(ClientCommand, SharedOptions), UsageError> {
    let words = [args.what, args.target].into_iter().flatten().chain(args.names);
    let mut words = Positionals::new(words, args.connection);
    let mut kind = words.list_kind();
    let wants_kind = words.words.len() > usize::from(words.command.is_empty());
    if let (None, Some(word), true) = (kind, words.words.front(), wants_kind)
        && !Target::is_url(word)
    {
        let near = nearest(word, &ListKind::NAMES).map(|near| format!("; did you mean {near}?"));
        let (word, near) = (redact::word(word), near.unwrap_or_default());
        let kinds = "tools, resources, templates, prompts, skills, models or all";
        return Err(usage!("cannot list {word:?}: expected {kinds}{near}"));
    }
    let target = words.only_target()?;
    // `list URL tools` is as clear as `list tools URL`.
    if matches!(kind, None | Some(ListKind::All)) {
        kind = words.list_kind().or(kind);
    }
    let what = kind.unwrap_or(ListKind::All);
    let has_url = words.words.front().is_some_and(|word| Target::is_url(word));
    let names = if what == ListKind::All && has_url { Vec::new() } else { words.rest() };
    words.finish(target, SessionCommand::List { what, names })
}

fn skills(command: SkillsArgs) -> Result<(ClientCommand, SharedOptions), UsageError> {
    const SKILL: &str = "the skill: the URI of its SKILL.md, or its name";
    let (words, target, command, json) = match command {
        SkillsArgs::List(args) => {
            let (mut words, json) = args.split(|_| None);
            let target = words.target()?;
            (words, target, SkillsCommand::List, json)
        }
        SkillsArgs::Show(args) => {
            let (mut words, args) = args.split(|args| args.skill.take().into_iter().chain(args.file.take()));
            let target = words.target_before_uris()?;
            let skill = words.next(SKILL)?;
            let file = words.words.pop_front();
            (words, target, SkillsCommand::Show { skill, file }, args.json)
        }
        SkillsArgs::Verify(args) => {
            let (mut words, args) = args.split(|args| take(&mut args.skills));
            let target = words.target_before_uris()?;
            let skills = words.rest();
            (words, target, SkillsCommand::Verify { skills }, args.json)
        }
        SkillsArgs::Pull(args) => {
            let (mut words, args) = args.split(|args| args.skill.take());
            let target = words.target_before_uris()?;
            let skill = words.next(SKILL)?;
            (words, target, SkillsCommand::Pull { skill, into: args.into }, args.json)
        }
    };
    let (command, mut shared) = words.finish(target, SessionCommand::Skills(command))?;
    if json.json {
        shared.output = OutputFormat::Json;
    }
    Ok((command, shared))
}

fn shell(args: ShellArgs) -> Result<(ClientCommand, SharedOptions), UsageError> {
    let ConnectionArgs { command, shared } = args.connection;
    let mut targets = args.targets.iter().map(|word| Target::parse(word)).collect::<Result<Vec<_>, _>>()?;
    if !command.is_empty() {
        targets.push(Target::Command(command));
    }
    Ok((ClientCommand::Shell { targets }, shared.resolve()))
}

fn bridge(args: BridgeArgs) -> Result<(ClientCommand, SharedOptions), UsageError> {
    let from = match args.from.as_str() {
        "stdio" if args.listen == BridgeListenOptions::default() => BridgeSide::Stdio,
        "stdio" => {
            let what = "there is no listener, so the options of a listener have no use";
            return Err(usage!("--from stdio: {what}"));
        }
        address => match Target::parse(address)? {
            Target::Url { url, transport } => {
                check_address(&url)?;
                check_certificate(&url, &args.listen)?;
                BridgeSide::Listen { url, transport, listen: args.listen }
            }
            Target::Command(_) | Target::Named(_) => {
                let what = "expected stdio, or an address to listen on such as http://127.0.0.1:3000/mcp";
                return Err(usage!("--from {}: {what}", redact::word(address)));
            }
        },
    };
    let to = match (args.to.as_deref(), args.connection.command) {
        (None | Some("stdio"), command) if !command.is_empty() => Target::Command(command),
        (None, _) => return Err(UsageError::new("missing: --to URL, or a command after `--`")),
        (Some("stdio"), _) => {
            return Err(UsageError::new("--to stdio needs the server's command after `--`"));
        }
        (Some(word), command) if command.is_empty() => Target::parse(word)?,
        (Some(word), _) => {
            return Err(usage!("there are two servers: {} and the command after `--`", redact::word(word)));
        }
    };
    let shared = args.connection.shared.resolve();
    check_effect(&shared, &to)?;
    Ok((ClientCommand::Bridge { from, to }, shared))
}

/// Refuses options that have no effect on a bridge: the clients that it serves decide these things, or the server is
/// reached in another way. What a name stands for is not known yet.
fn check_effect(shared: &SharedOptions, to: &Target) -> Result<(), UsageError> {
    let (is_url, is_command) = (matches!(to, Target::Url { .. }), matches!(to, Target::Command(_)));
    let clients = "on a bridge: its clients decide that";
    let started = "on a server that is started: it is for one at a URL";
    let at_url = "on a server at a URL: it is for one that is started";
    let named = "on a server that no configuration file names";
    let useless = [
        ("--sampler", shared.sampler.is_some(), clients),
        ("--model", shared.model.is_some(), clients),
        ("--root", !shared.roots.is_empty(), clients),
        ("--log-level", shared.log_level.is_some(), clients),
        ("--total-timeout", shared.total_timeout != SharedOptions::TOTAL_TIMEOUT, clients),
        ("--header", is_command && !shared.headers.is_empty(), started),
        ("--cacert", is_command && !shared.cacert.is_empty(), started),
        ("--explain", is_command && shared.explain, started),
        ("--env", is_url && !shared.env.is_empty(), at_url),
        ("--cwd", is_url && shared.cwd.is_some(), at_url),
        ("--server-stderr", is_url && shared.server_stderr != ServerStderr::default(), at_url),
        ("--config", (is_url || is_command) && shared.config.is_some(), named),
        ("--yes", (is_url || is_command) && shared.yes, named),
    ];
    match useless.into_iter().find(|(_, given, _)| *given) {
        Some((option, _, why)) => Err(usage!("{option} has no effect {why}")),
        None => Ok(()),
    }
}

/// Whether an address to listen on has no more than that.
fn check_address(from: &Url) -> Result<(), UsageError> {
    let shown = redact::url(from.as_str());
    let has_user = !from.username().is_empty() || from.password().is_some();
    match (has_user, from.query().or(from.fragment())) {
        (true, _) => Err(usage!("--from {shown}: a user or password has no effect")),
        (_, Some(_)) => Err(usage!("--from {shown}: what follows the path has no effect")),
        _ => Ok(()),
    }
}

/// Whether there is a certificate where one is needed, and only there.
fn check_certificate(from: &Url, listen: &BridgeListenOptions) -> Result<(), UsageError> {
    let secure = matches!(from.scheme(), "https" | "wss");
    let shown = redact::url(from.as_str());
    match (secure, listen.tls_cert.is_some()) {
        (true, false) => Err(usage!("--from {shown}: needs --tls-cert FILE and --tls-key FILE")),
        (false, true) => {
            let with = if from.scheme() == "ws" { "wss" } else { "https" };
            Err(usage!("--from {shown}: has no use for a certificate; {with}:// has"))
        }
        _ => Ok(()),
    }
}
