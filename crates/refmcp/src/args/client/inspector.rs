//! `--cli`: the flags of the MCP Inspector's command line, translated to commands of refmcp.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use refmcp_client::{VersionPolicy, redact};
use refmcp_proto::model::LogLevel;
use refmcp_proto::revision::Method;

use super::options::log_level;
use super::{ClientCommand, ListKind, OutputFormat, ServerStderr, SessionCommand, SharedOptions};
use crate::args::value::{Header, header, pair, seconds};
use crate::args::{LogOptions, Target, UrlTransport, UsageError, parse_shared_options, usage};
use crate::arguments::ArgumentInput;

/// Drive a server with the flags of the MCP Inspector.
#[derive(Debug, Parser)]
#[command(
    name = "refmcp",
    override_usage = "refmcp --cli <URL|COMMAND...> --method <METHOD> [OPTIONS] [-- <ARGUMENT>...]"
)]
pub(in crate::args) struct Inspector {
    #[command(flatten)]
    logging: LogOptions,

    /// Understand the flags of the MCP Inspector.
    #[arg(long)]
    cli: bool,

    /// The server's URL, or the command that starts it.
    #[arg(value_name = "TARGET")]
    target: Vec<String>,

    /// Further arguments of the command.
    #[arg(last = true, value_name = "ARGUMENT")]
    rest: Vec<String>,

    /// The method of the request.
    #[arg(long)]
    method: String,

    /// The tool of tools/call.
    #[arg(long, value_name = "NAME")]
    tool_name: Option<String>,

    /// Arguments of tools/call.
    #[arg(long, value_name = "KEY=VALUE", num_args = 1..)]
    tool_arg: Vec<String>,

    /// The resource of resources/read.
    #[arg(long)]
    uri: Option<String>,

    /// The prompt of prompts/get.
    #[arg(long, value_name = "NAME")]
    prompt_name: Option<String>,

    /// Arguments of prompts/get.
    #[arg(long, value_name = "KEY=VALUE", num_args = 1..)]
    prompt_args: Vec<String>,

    /// The level of logging/setLevel.
    #[arg(long, value_name = "LEVEL", value_parser = log_level())]
    log_level: Option<LogLevel>,

    /// The transport; found out if left out.
    #[arg(long, value_enum)]
    transport: Option<Transport>,

    /// A header field for every HTTP request.
    #[arg(long = "header", value_name = "NAME: VALUE", value_parser = header, num_args = 1..)]
    headers: Vec<Header>,

    /// A variable in the environment of a server that is started.
    #[arg(short = 'e', value_name = "KEY=VALUE", value_parser = pair)]
    env: Vec<(String, String)>,

    /// A file that names servers.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// The server's name in that file.
    #[arg(long, value_name = "NAME", requires = "config")]
    server: Option<String>,

    /// The tool's arguments as one JSON object.
    #[arg(long, value_name = "JSON")]
    tool_args_json: Option<String>,

    /// The server's URL, instead of a target.
    #[arg(long, value_name = "URL", conflicts_with = "target")]
    server_url: Option<String>,

    /// Which revisions may be spoken.
    #[arg(long, value_name = "ERA", default_value = "auto")]
    protocol_era: VersionPolicy,

    /// The folder to start the server in.
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,

    /// A member of `_meta` in every request.
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair, num_args = 1..)]
    metadata: Vec<(String, String)>,

    /// A member of `_meta` when a tool is called; comes after those of all requests.
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair, num_args = 1..)]
    tool_metadata: Vec<(String, String)>,

    /// How many seconds to wait for an answer or progress.
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    timeout: std::time::Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Transport {
    Stdio,
    Sse,
    Http,
}

impl Inspector {
    /// The command that the flags mean.
    pub(in crate::args) fn translate(self) -> Result<(LogOptions, ClientCommand, SharedOptions), UsageError> {
        let target = target(
            self.server_url.into_iter().chain(self.target).collect(),
            self.rest,
            self.transport,
            self.config.is_some().then_some(self.server),
        )?;
        let needs = |what: &str| usage!("{} needs {what}", self.method);
        let list = |what| SessionCommand::List { what, names: Vec::new() };
        let command = match Method::known(&self.method) {
            Some(Method::ListTools) => list(ListKind::Tools),
            Some(Method::ListResources) => list(ListKind::Resources),
            Some(Method::ListResourceTemplates) => list(ListKind::Templates),
            Some(Method::ListPrompts) => list(ListKind::Prompts),
            Some(Method::CallTool) => {
                let tool = self.tool_name.ok_or_else(|| needs("--tool-name"))?;
                let arguments = ArgumentInput { words: self.tool_arg, json: self.tool_args_json };
                SessionCommand::Call { tool, arguments }
            }
            Some(Method::ReadResource) => {
                SessionCommand::Read { uri: self.uri.ok_or_else(|| needs("--uri"))? }
            }
            Some(Method::GetPrompt) => {
                let name = self.prompt_name.ok_or_else(|| needs("--prompt-name"))?;
                let arguments = ArgumentInput { words: self.prompt_args, json: None };
                SessionCommand::Prompt { name, arguments }
            }
            Some(Method::SetLevel) => {
                let level = self.log_level.ok_or_else(|| needs("--log-level"))?;
                SessionCommand::SetLevel { level }
            }
            _ => SessionCommand::Raw { method: self.method, params: None },
        };
        let calls_tool = matches!(command, SessionCommand::Call { .. });
        let of_tool = self.tool_metadata.into_iter().filter(|_| calls_tool);
        let defaults =
            parse_shared_options(&[]).ok_or_else(|| UsageError::new("the options have no defaults"))?;
        let shared = SharedOptions {
            config: self.config,
            protocol_version: self.protocol_era,
            timeout: self.timeout,
            total_timeout: self.timeout.saturating_mul(10),
            headers: self.headers,
            env: self.env,
            meta: self.metadata.into_iter().chain(of_tool).collect(),
            cwd: self.cwd,
            server_stderr: ServerStderr::Show,
            // The Inspector asks for no consent.
            yes: true,
            output: OutputFormat::Json,
            text_errors: true,
            ..defaults
        };
        Ok((self.logging, ClientCommand::InSession(target, command), shared))
    }
}

/// The server, from the words before and after `--`, or by its name in a file.
fn target(
    words: Vec<String>,
    rest: Vec<String>,
    transport: Option<Transport>,
    configured: Option<Option<String>>,
) -> Result<Target, UsageError> {
    let words: Vec<String> = words.into_iter().chain(rest).collect();
    match (words.first(), configured) {
        (None, Some(Some(name))) => Ok(Target::Named(name)),
        (None, Some(None)) => Err(UsageError::new("which server of the file? say --server NAME")),
        (Some(word), Some(_)) => {
            Err(usage!("there are two targets: {:?} and the one of --config", redact::word(word)))
        }
        (None, None) => Err(UsageError::new("missing: the server's URL, or the command that starts it")),
        (Some(first), None) if Target::is_url(first) => {
            if words.len() > 1 {
                return Err(UsageError::new("a server at a URL takes no arguments"));
            }
            over(Target::parse(first)?, transport)
        }
        (Some(_), None) => match transport {
            None | Some(Transport::Stdio) => Ok(Target::Command(words)),
            Some(_) => Err(UsageError::new("a command can only be talked to over stdio")),
        },
    }
}

fn over(target: Target, transport: Option<Transport>) -> Result<Target, UsageError> {
    match (target, transport) {
        (target, None) => Ok(target),
        (Target::Url { url, .. }, Some(Transport::Http)) => {
            Ok(Target::Url { url, transport: UrlTransport::StreamableHttp })
        }
        (Target::Url { url, .. }, Some(Transport::Sse)) => {
            Ok(Target::Url { url, transport: UrlTransport::Sse })
        }
        (_, Some(_)) => Err(UsageError::new("a server at a URL cannot be talked to over stdio")),
    }
}
