//! The commands that drive a server: their positionals and options, and what they mean.

mod auth;
mod check;
mod command;
mod inspector;
mod options;
mod replay;
mod resolve;
mod skills;

use std::path::PathBuf;

use clap::Subcommand;

use super::help::{examples, usages};
use super::value::{host_name, pair, web_origin};
use auth::AuthArgs;
use options::OutputOptions;

pub(crate) use auth::{
    AuthCommand, BrowserOptions, EnterpriseOptions, GrantType, KeyringAction, LoginOptions,
};
pub(crate) use check::CheckOptions;
pub(crate) use command::{BridgeSide, ClientCommand, ListKind, SessionCommand, TaskCommand};
pub(super) use inspector::Inspector;
pub(crate) use options::{OutputFormat, ServerStderr, SharedOptions, log_level};
pub(crate) use replay::{ReplayOptions, ReplayUse};
use skills::SkillsArgs;
pub(crate) use skills::SkillsCommand;

/// Commands that drive a server. `defer`: the options of a command are built only when it is the one that was typed.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(super) enum ClientArgs {
    /// Show what a server offers.
    #[command(override_usage = "\
refmcp list [OPTIONS] [tools|resources|templates|prompts|skills|models|all] <TARGET> [NAME]...
       refmcp list [OPTIONS] <tools|resources|templates|prompts|skills|models|all> [NAME]... -- <COMMAND>...
       refmcp list [OPTIONS] -- <COMMAND>...", after_help = examples("refmcp list"))]
    List(ListArgs),
    /// Call a tool.
    #[command(override_usage = usages("call", "<TOOL> [KEY=VALUE]..."), after_help = examples("refmcp call"))]
    Call(ServerArgs<CallArgs>),
    /// Follow or cancel tasks: calls of tools that go on at the server.
    #[command(after_help = examples("refmcp task"))]
    Task {
        #[command(subcommand)]
        command: TaskArgs,
    },
    /// Read a resource.
    #[command(override_usage = usages("read", "<URI>"), after_help = examples("refmcp read"))]
    Read(ServerArgs<ReadArgs>),
    /// Get a prompt.
    #[command(override_usage = usages("prompt", "<NAME> [KEY=VALUE]..."), after_help = examples("refmcp prompt"))]
    Prompt(ServerArgs<PromptArgs>),
    /// Ask the server for values that an argument could have.
    #[command(override_usage = "\
refmcp complete [OPTIONS] <--prompt <NAME>|--template <URI>> <TARGET> <ARGUMENT=PREFIX>
       refmcp complete [OPTIONS] <--prompt <NAME>|--template <URI>> <ARGUMENT=PREFIX> -- <COMMAND>...", after_help = examples("refmcp complete"))]
    Complete(ServerArgs<CompleteArgs>),
    /// Show what changes: the lists, and the resources that are named.
    #[command(override_usage = usages("watch", "[URI]..."), after_help = examples("refmcp watch"))]
    Watch(ServerArgs<WatchArgs>),
    /// Show who the server is, what it can do and which revision it speaks.
    #[command(override_usage = usages("info", ""), after_help = examples("refmcp info"))]
    Info(ServerArgs),
    /// Show or select the models that a server knows (a method beyond the protocol).
    #[command(alias = "model", args_conflicts_with_subcommands = true, override_usage = "\
refmcp models [OPTIONS] <TARGET>
       refmcp models [OPTIONS] -- <COMMAND>...
       refmcp models <list|select> ...", after_help = examples("refmcp models"))]
    Models {
        #[command(subcommand)]
        command: Option<ModelsArgs>,
        #[command(flatten)]
        list: Box<ServerArgs>,
    },
    /// Show, verify and save the skills that a server ships.
    #[command(after_help = examples("refmcp skills"))]
    Skills {
        #[command(subcommand)]
        command: SkillsArgs,
    },
    /// Show the apps of a server, pages that hosts show beside calls of tools, as a host would judge them.
    #[command(override_usage = "refmcp apps <list|show> ...", after_help = examples("refmcp apps"))]
    Apps {
        #[command(subcommand)]
        command: AppsArgs,
    },
    /// Show what a server says of itself beyond the protocol: endpoints, revisions, scopes.
    #[command(override_usage = usages("metadata", ""), after_help = examples("refmcp metadata"))]
    Metadata(ServerArgs),
    /// Send any request and show the answer.
    #[command(override_usage = usages("raw", "<METHOD> [JSON]"), after_help = examples("refmcp raw"))]
    Raw(ServerArgs<RawArgs>),
    /// Check by which rules of the specification a server keeps: sends it right and wrong requests, and says what to change.
    #[command(override_usage = usages("check", ""), after_help = examples("refmcp check"))]
    Check(Box<CheckArgs>),
    /// Use a recording again: as a client against a server, as a server against a client, or beside another recording.
    #[command(override_usage = "\
refmcp replay [OPTIONS] <FILE> <TARGET>
       refmcp replay [OPTIONS] <FILE> -- <COMMAND>...
       refmcp replay [OPTIONS] <FILE> --serve [ADDRESS]
       refmcp replay [OPTIONS] <FILE> --stdio
       refmcp replay [OPTIONS] <FILE> --diff <FILE>", after_help = examples("refmcp replay"))]
    Replay(Box<ReplayArgs>),
    /// Talk to one or several servers, line by line.
    #[command(override_usage = "\
refmcp shell [OPTIONS] [TARGET]...
       refmcp shell [OPTIONS] [TARGET]... -- <COMMAND>...", after_help = examples("refmcp shell"))]
    Shell(ShellArgs),
    /// Serve clients of one transport and revision by a server of another.
    #[command(override_usage = "\
refmcp bridge [OPTIONS] --from <FROM> --to <TO>
       refmcp bridge [OPTIONS] --from <FROM> -- <COMMAND>...", after_help = examples("refmcp bridge"))]
    Bridge(BridgeArgs),
    /// Log in to servers that need authorization.
    #[command(after_help = examples("refmcp auth"))]
    Auth {
        #[command(subcommand)]
        command: AuthArgs,
    },
}

// No doc comment: it would become the description of `models`.
#[derive(Debug, Subcommand)]
pub(super) enum ModelsArgs {
    /// Show the models, and which one is active; the same as `list models`.
    #[command(override_usage = usages("models list", ""), after_help = examples("refmcp models list"))]
    List(ServerArgs),
    /// Select a model and see whether the server takes it; a call is made with one by `call --model NAME`.
    #[command(override_usage = usages("models select", "<NAME>"), after_help = examples("refmcp models select"))]
    Select(ServerArgs<SelectArgs>),
}

// No doc comment: it would become the description of `task`.
#[derive(Debug, Subcommand)]
pub(super) enum TaskArgs {
    /// Show the tasks that the server keeps for this client (2025-11-25).
    #[command(override_usage = usages("task list", ""), after_help = examples("refmcp task list"))]
    List(ServerArgs),
    /// Show how far a task has come.
    #[command(override_usage = usages("task get", "<ID>"), after_help = examples("refmcp task get"))]
    Get(ServerArgs<TaskIdArgs>),
    /// Wait until a task ends, and show its result; what it asks meanwhile is answered here.
    #[command(override_usage = usages("task result", "<ID>"), after_help = examples("refmcp task result"))]
    Result(ServerArgs<TaskIdArgs>),
    /// Cancel a task.
    #[command(override_usage = usages("task cancel", "<ID>"), after_help = examples("refmcp task cancel"))]
    Cancel(ServerArgs<TaskIdArgs>),
    /// Show how far a task comes, until it ends; what it asks meanwhile is answered here.
    #[command(override_usage = usages("task watch", "<ID>"), after_help = examples("refmcp task watch"))]
    Watch(ServerArgs<TaskIdArgs>),
}

#[derive(Debug, clap::Args)]
pub(super) struct TaskIdArgs {
    /// The task's id.
    #[arg(value_name = "ID")]
    id: Option<String>,
}

// No doc comment: it would become the description of `apps`.
#[derive(Debug, Subcommand)]
pub(super) enum AppsArgs {
    /// Show the apps, the tools that each shows, and the tools that are for apps alone.
    #[command(override_usage = usages("apps list", ""), after_help = examples("refmcp apps list"))]
    List(ServerArgs),
    /// Show an app: what it loads and asks for, the policy that a host enforces, and what is wrong with it.
    #[command(override_usage = usages("apps show", "<URI|TOOL>"), after_help = examples("refmcp apps show"))]
    Show(ServerArgs<ShowAppArgs>),
}

#[derive(Debug, clap::Args)]
pub(super) struct ShowAppArgs {
    /// The app's URI, or a tool that it shows.
    #[arg(value_name = "URI|TOOL")]
    app: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct SelectArgs {
    /// The model's name.
    #[arg(value_name = "NAME")]
    name: Option<String>,
}

// Arguments of a command that drives one server. TARGET is left out when a command follows `--`, so which positional
// means what is decided by `ClientArgs::resolve`. No doc comment: it would become the description of each command.
#[derive(Debug, clap::Args)]
pub(super) struct ServerArgs<P: clap::Args = NoPositionals> {
    /// The server: a URL (http, https, ws, wss, sse+http, sse+https) or a name from a configuration file.
    #[arg(value_name = "TARGET")]
    target: Option<String>,
    #[command(flatten)]
    positionals: P,
    #[command(flatten)]
    connection: ConnectionArgs,
}

// The command that starts the server, and the options of all commands.
#[derive(Debug, clap::Args)]
struct ConnectionArgs {
    /// A command that starts the server, instead of TARGET.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    #[command(flatten)]
    shared: OutputOptions,
}

// The same for `check`, whose output has formats of its own.
#[derive(Debug, clap::Args)]
pub(super) struct CheckArgs {
    /// The server: a URL (http, https, ws, wss, sse+http, sse+https) or a name from a configuration file.
    #[arg(value_name = "TARGET")]
    target: Option<String>,
    #[command(flatten)]
    options: CheckOptions,
    /// A command that starts the server, instead of TARGET.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    #[command(flatten)]
    shared: SharedOptions,
}

// The same for `replay`, whose first word is a file.
#[derive(Debug, clap::Args)]
pub(super) struct ReplayArgs {
    /// The recording, as `--record` writes it; `-` is standard input.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The server: a URL (http, https, ws, wss, sse+http, sse+https) or a name from a configuration file.
    #[arg(value_name = "TARGET")]
    target: Option<String>,
    #[command(flatten)]
    options: ReplayOptions,
    /// A command that starts the server, instead of TARGET.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    #[command(flatten)]
    shared: SharedOptions,
}

// A command without positionals besides TARGET.
#[derive(Debug, clap::Args)]
pub(super) struct NoPositionals {}

#[derive(Debug, clap::Args)]
pub(super) struct ListArgs {
    /// What to show: tools, resources, templates, prompts, skills, models, or all; all if left out.
    #[arg(value_name = "WHAT")]
    what: Option<String>,
    /// The server: a URL (http, https, ws, wss, sse+http, sse+https) or a name from a configuration file.
    #[arg(value_name = "TARGET")]
    target: Option<String>,
    /// Single things to show whole, with their descriptions and schemas.
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    connection: ConnectionArgs,
}

#[derive(Debug, clap::Args)]
pub(super) struct CallArgs {
    /// The tool's name.
    #[arg(value_name = "TOOL")]
    tool: Option<String>,
    /// The tool's arguments; on a terminal, what is missing is asked for.
    #[arg(value_name = "KEY=VALUE")]
    arguments: Vec<String>,
    #[command(flatten)]
    json: JsonArgs,
    /// Call it as a task, whose id is shown: what goes on when this command is interrupted.
    #[arg(long)]
    task: bool,
    /// Call it as a task, show the id and leave; `refmcp task` has the rest.
    #[arg(long)]
    detach: bool,
}

#[derive(Debug, clap::Args)]
struct JsonArgs {
    /// All arguments as a JSON object, or @FILE with one in it, or - to read it from standard input.
    #[arg(long, value_name = "JSON")]
    json: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct ReadArgs {
    /// The resource's URI.
    #[arg(value_name = "URI")]
    uri: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct PromptArgs {
    /// The prompt's name.
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// The prompt's arguments; on a terminal, what is missing is asked for.
    #[arg(value_name = "KEY=VALUE")]
    arguments: Vec<String>,
    #[command(flatten)]
    json: JsonArgs,
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct ReferenceArgs {
    /// The prompt that the argument belongs to.
    #[arg(long, value_name = "NAME")]
    prompt: Option<String>,
    /// The resource template that the variable belongs to.
    #[arg(long, value_name = "URI")]
    template: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct CompleteArgs {
    #[command(flatten)]
    reference: ReferenceArgs,
    /// Another argument that already has a value; can be repeated.
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    context: Vec<(String, String)>,
    /// The argument's name, and how its value begins.
    #[arg(value_name = "ARGUMENT=PREFIX")]
    argument: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct WatchArgs {
    /// Resources to watch.
    #[arg(value_name = "URI")]
    uris: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct RawArgs {
    /// The request's method.
    #[arg(value_name = "METHOD")]
    method: Option<String>,
    /// The request's parameters as a JSON object, or @FILE with it, or - to read it from standard input.
    #[arg(value_name = "JSON")]
    params: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct ShellArgs {
    /// The servers: URLs (http, https, ws, wss, sse+http, sse+https) or names from a configuration file; all that
    /// the configuration files name if left out.
    #[arg(value_name = "TARGET")]
    targets: Vec<String>,
    #[command(flatten)]
    connection: ConnectionArgs,
}

#[derive(Debug, clap::Args)]
pub(super) struct BridgeArgs {
    /// The side of the clients: stdio, or a URL to listen on such as http://127.0.0.1:3000/mcp.
    #[arg(long, value_name = "FROM")]
    from: String,
    /// The server: a URL, a name from a configuration file, or stdio with a command after `--`.
    #[arg(long, value_name = "TO")]
    to: Option<String>,
    #[command(flatten)]
    connection: ConnectionArgs,
    #[command(flatten)]
    listen: BridgeListenOptions,
}

// Access to a bridge that listens, and TLS.
#[derive(Debug, Clone, Default, PartialEq, Eq, clap::Args)]
#[command(next_help_heading = "Listening")]
pub(crate) struct BridgeListenOptions {
    /// A further name under which clients may address the bridge; can be repeated.
    #[arg(long, value_name = "NAME", value_parser = host_name)]
    pub(crate) allow_host: Vec<String>,
    /// A further web origin whose pages may use the bridge; can be repeated.
    #[arg(long, value_name = "ORIGIN", value_parser = web_origin)]
    pub(crate) allow_origin: Vec<String>,
    /// A file of certificates in PEM, the bridge's own first; needed to listen at https and wss.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The file of the certificate's private key, in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
}
