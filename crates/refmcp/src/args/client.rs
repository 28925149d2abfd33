//! The commands that drive a server, as they are typed. Every one of them can do without the word for the target
//! when a command stands behind `--`, so which word means what is decided only when all are there.

use std::path::PathBuf;

use clap::Subcommand;

use super::auth::AuthWords;
use super::examples;
use super::models::ModelsWords;
use super::shared::SharedOptions;
use super::value::pair;

/// Commands that drive a server. What a command takes is put together only for the one that was typed.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(super) enum ClientWords {
    /// Show what a server offers.
    #[command(override_usage = "\
refmcp list [OPTIONS] [tools|resources|templates|prompts|models|all] <TARGET> [NAME]...
       refmcp list [OPTIONS] <tools|resources|templates|prompts|models|all> [NAME]... -- <COMMAND>...
       refmcp list [OPTIONS] -- <COMMAND>...", after_help = examples::LIST)]
    List(ListWords),
    /// Call a tool.
    #[command(override_usage = "\
refmcp call [OPTIONS] <TARGET> <TOOL> [KEY=VALUE]...
       refmcp call [OPTIONS] <TOOL> [KEY=VALUE]... -- <COMMAND>...", after_help = examples::CALL)]
    Call(CallWords),
    /// Read a resource.
    #[command(override_usage = "\
refmcp read [OPTIONS] <TARGET> <URI>
       refmcp read [OPTIONS] <URI> -- <COMMAND>...", after_help = examples::READ)]
    Read(ReadWords),
    /// Get a prompt.
    #[command(override_usage = "\
refmcp prompt [OPTIONS] <TARGET> <NAME> [KEY=VALUE]...
       refmcp prompt [OPTIONS] <NAME> [KEY=VALUE]... -- <COMMAND>...", after_help = examples::PROMPT)]
    Prompt(PromptWords),
    /// Ask the server for values that an argument could have.
    #[command(override_usage = "\
refmcp complete [OPTIONS] <--prompt <NAME>|--template <URI>> <TARGET> <ARGUMENT=PREFIX>
       refmcp complete [OPTIONS] <--prompt <NAME>|--template <URI>> <ARGUMENT=PREFIX> -- <COMMAND>...", after_help = examples::COMPLETE)]
    Complete(CompleteWords),
    /// Show what changes: the lists, and the resources that are named.
    #[command(override_usage = "\
refmcp watch [OPTIONS] <TARGET> [URI]...
       refmcp watch [OPTIONS] [URI]... -- <COMMAND>...", after_help = examples::WATCH)]
    Watch(WatchWords),
    /// Show who the server is, what it can do and which revision it speaks.
    #[command(override_usage = "\
refmcp info [OPTIONS] <TARGET>
       refmcp info [OPTIONS] -- <COMMAND>...", after_help = examples::INFO)]
    Info(InfoWords),
    /// Show or select the models that a server knows (a method beyond the protocol).
    #[command(alias = "model", args_conflicts_with_subcommands = true, override_usage = "\
refmcp models [OPTIONS] <TARGET>
       refmcp models [OPTIONS] -- <COMMAND>...
       refmcp models <list|select> ...", after_help = examples::MODELS)]
    Models {
        #[command(subcommand)]
        words: Option<ModelsWords>,
        #[command(flatten)]
        list: Box<InfoWords>,
    },
    /// Show what a server says of itself beyond the protocol: endpoints, revisions, scopes.
    #[command(override_usage = "\
refmcp metadata [OPTIONS] <TARGET>
       refmcp metadata [OPTIONS] -- <COMMAND>...", after_help = examples::METADATA)]
    Metadata(InfoWords),
    /// Send any request and show the answer.
    #[command(override_usage = "\
refmcp raw [OPTIONS] <TARGET> <METHOD> [JSON]
       refmcp raw [OPTIONS] <METHOD> [JSON] -- <COMMAND>...", after_help = examples::RAW)]
    Raw(RawWords),
    /// Talk to one or several servers, line by line.
    #[command(override_usage = "\
refmcp shell [OPTIONS] [TARGET]...
       refmcp shell [OPTIONS] [TARGET]... -- <COMMAND>...", after_help = examples::SHELL)]
    Shell(ShellWords),
    /// Pass messages from one transport to another.
    #[command(override_usage = "\
refmcp bridge [OPTIONS] --from <FROM> --to <TO>
       refmcp bridge [OPTIONS] --from <FROM> -- <COMMAND>...", after_help = examples::BRIDGE)]
    Bridge(BridgeWords),
    /// Log in to servers that want to know who asks.
    #[command(after_help = examples::AUTH)]
    Auth {
        #[command(subcommand)]
        words: AuthWords,
    },
}

#[derive(Debug, clap::Args)]
pub(super) struct ListWords {
    /// What to show: tools, resources, templates, prompts, models, or all; all if left out.
    #[arg(value_name = "WHAT")]
    pub(super) what: Option<String>,
    /// The server: a URL (http, https, ws, wss, sse+http, sse+https) or a name from a configuration file.
    #[arg(value_name = "TARGET")]
    pub(super) target: Option<String>,
    /// Single things to show whole, with their descriptions and schemas.
    #[arg(value_name = "NAME")]
    pub(super) names: Vec<String>,
    #[command(flatten)]
    pub(super) server: ServerCommand,
    #[command(flatten)]
    pub(super) shared: SharedOptions,
}

// A server that is started for this command.
#[derive(Debug, clap::Args)]
pub(super) struct ServerCommand {
    /// A command that starts the server, instead of TARGET.
    #[arg(last = true, value_name = "COMMAND")]
    pub(super) command: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct CallWords {
    /// The server: a URL (http, https, ws, wss, sse+http, sse+https) or a name from a configuration file.
    #[arg(value_name = "TARGET")]
    pub(super) target: Option<String>,
    /// The tool's name.
    #[arg(value_name = "TOOL")]
    pub(super) tool: Option<String>,
    /// The tool's arguments; on a terminal, what is missing is asked for.
    #[arg(value_name = "KEY=VALUE")]
    pub(super) arguments: Vec<String>,
    /// All arguments as a JSON object, or @FILE with one in it, or - to read it from standard input.
    #[arg(long, value_name = "JSON")]
    pub(super) json: Option<String>,
    #[command(flatten)]
    pub(super) server: ServerCommand,
    #[command(flatten)]
    pub(super) shared: SharedOptions,
}

#[derive(Debug, clap::Args)]
pub(super) struct ReadWords {
    /// The server: a URL (http, https, ws, wss, sse+http, sse+https) or a name from a configuration file.
    #[arg(value_name = "TARGET")]
    pub(super) target: Option<String>,
    /// The resource's address.
    #[arg(value_name = "URI")]
    pub(super) uri: Option<String>,
    #[command(flatten)]
    pub(super) server: ServerCommand,
    #[command(flatten)]
    pub(super) shared: SharedOptions,
}

#[derive(Debug, clap::Args)]
pub(super) struct PromptWords {
    /// The server: a URL (http, https, ws, wss, sse+http, sse+https) or a name from a configuration file.
    #[arg(value_name = "TARGET")]
    pub(super) target: Option<String>,
    /// The prompt's name.
    #[arg(value_name = "NAME")]
    pub(super) name: Option<String>,
    /// The prompt's arguments; on a terminal, what is missing is asked for.
    #[arg(value_name = "KEY=VALUE")]
    pub(super) arguments: Vec<String>,
    /// All arguments as a JSON object, or @FILE with one in it, or - to read it from standard input.
    #[arg(long, value_name = "JSON")]
    pub(super) json: Option<String>,
    #[command(flatten)]
    pub(super) server: ServerCommand,
    #[command(flatten)]
    pub(super) shared: SharedOptions,
}

#[derive(Debug, clap::Args)]
#[group(id = "completable", required = true, multiple = false, args = ["prompt", "template"])]
pub(super) struct CompleteWords {
    /// The prompt that the argument belongs to.
    #[arg(long, value_name = "NAME")]
    pub(super) prompt: Option<String>,
    /// The resource template that the variable belongs to.
    #[arg(long, value_name = "URI")]
    pub(super) template: Option<String>,
    /// Another argument that already has a value; can be repeated.
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    pub(super) context: Vec<(String, String)>,
    /// The server: a URL (http, https, ws, wss, sse+http, sse+https) or a name from a configuration file.
    #[arg(value_name = "TARGET")]
    pub(super) target: Option<String>,
    /// The argument's name, and how its value begins.
    #[arg(value_name = "ARGUMENT=PREFIX")]
    pub(super) argument: Option<String>,
    #[command(flatten)]
    pub(super) server: ServerCommand,
    #[command(flatten)]
    pub(super) shared: SharedOptions,
}

#[derive(Debug, clap::Args)]
pub(super) struct WatchWords {
    /// The server: a URL (http, https, ws, wss, sse+http, sse+https) or a name from a configuration file.
    #[arg(value_name = "TARGET")]
    pub(super) target: Option<String>,
    /// Resources to watch.
    #[arg(value_name = "URI")]
    pub(super) uris: Vec<String>,
    #[command(flatten)]
    pub(super) server: ServerCommand,
    #[command(flatten)]
    pub(super) shared: SharedOptions,
}

#[derive(Debug, clap::Args)]
pub(super) struct InfoWords {
    /// The server: a URL (http, https, ws, wss, sse+http, sse+https) or a name from a configuration file.
    #[arg(value_name = "TARGET")]
    pub(super) target: Option<String>,
    #[command(flatten)]
    pub(super) server: ServerCommand,
    #[command(flatten)]
    pub(super) shared: SharedOptions,
}

#[derive(Debug, clap::Args)]
pub(super) struct RawWords {
    /// The server: a URL (http, https, ws, wss, sse+http, sse+https) or a name from a configuration file.
    #[arg(value_name = "TARGET")]
    pub(super) target: Option<String>,
    /// The request's method.
    #[arg(value_name = "METHOD")]
    pub(super) method: Option<String>,
    /// The request's parameters as a JSON object, or @FILE with it, or - to read it from standard input.
    #[arg(value_name = "JSON")]
    pub(super) params: Option<String>,
    #[command(flatten)]
    pub(super) server: ServerCommand,
    #[command(flatten)]
    pub(super) shared: SharedOptions,
}

#[derive(Debug, clap::Args)]
pub(super) struct ShellWords {
    /// The servers: URLs (http, https, ws, wss, sse+http, sse+https) or names from a configuration file; all that
    /// the configuration files name if left out.
    #[arg(value_name = "TARGET")]
    pub(super) targets: Vec<String>,
    #[command(flatten)]
    pub(super) server: ServerCommand,
    #[command(flatten)]
    pub(super) shared: SharedOptions,
}

#[derive(Debug, clap::Args)]
pub(super) struct BridgeWords {
    /// Where clients come from: stdio, or an address to listen on such as http://127.0.0.1:3000/mcp.
    #[arg(long, value_name = "FROM")]
    pub(super) from: String,
    /// The server: a URL, a name from a configuration file, or stdio with a command after `--`.
    #[arg(long, value_name = "TO")]
    pub(super) to: Option<String>,
    #[command(flatten)]
    pub(super) door: BridgeListenOptions,
    #[command(flatten)]
    pub(super) server: ServerCommand,
    #[command(flatten)]
    pub(super) shared: SharedOptions,
}

// Who may come to a bridge that listens, and how.
#[derive(Debug, Clone, Default, PartialEq, Eq, clap::Args)]
pub(crate) struct BridgeListenOptions {
    /// A further name under which clients may address the bridge; can be repeated.
    #[arg(long, value_name = "NAME", help_heading = "Listening")]
    pub(crate) allow_host: Vec<String>,
    /// A further web origin whose pages may use the bridge; can be repeated.
    #[arg(long, value_name = "ORIGIN", help_heading = "Listening")]
    pub(crate) allow_origin: Vec<String>,
    /// A file of certificates in PEM, the bridge's own first; needed to listen at https and wss.
    #[arg(long, value_name = "FILE", requires = "tls_key", help_heading = "Listening")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The file of the certificate's private key, in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert", help_heading = "Listening")]
    pub(crate) tls_key: Option<PathBuf>,
}
