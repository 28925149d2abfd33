//! The commands of the shell, as clap reads them. A first word that is no command is a tool, and `/NAME` a prompt.

use std::path::PathBuf;

use clap::{CommandFactory, Parser};
use refmcp_client::model::LogLevel;
use refmcp_client::redact::{self, MASK};

use crate::args::{ListKind, Target, UsageError, log_level, pair, split_words};
use crate::arguments::ArgumentInput;

/// What a line asks for.
#[derive(Debug, Clone, PartialEq, Eq, Parser)]
#[command(no_binary_name = true, disable_version_flag = true, disable_help_subcommand = true)]
pub(super) enum Command {
    /// List the tools
    Tools(OfServer),
    /// List the resources
    Resources(OfServer),
    /// List the resource templates
    Templates(OfServer),
    /// List the prompts
    Prompts(OfServer),
    /// List the models of servers that have some
    Models(OfServer),
    /// List all of these, or one kind of them
    #[command(after_help = "Example:\n  list prompts")]
    List {
        /// What to list
        #[arg(value_enum, default_value = "all")]
        what: ListKind,
        #[command(flatten)]
        of: OfServer,
    },
    /// Call a tool; `call` can be left out
    #[command(after_help = "Examples:\n  echo message='good day'\n  call echo message=@letter.txt\n  \
                            draw points:=[[0,1],[2,3]]\n  draw --json {\"points\": []}\n\n\
                            `help TOOL` shows a tool and its arguments.")]
    Call {
        /// The tool's name, or SERVER.NAME
        tool: String,
        #[command(flatten)]
        arguments: ArgumentInput,
    },
    /// Read a resource, or the one that a template and its variables lead to
    #[command(after_help = "Examples:\n  read file:///notes/todo.txt\n  read memos shelf=travel name=oslo")]
    Read {
        /// The URI of a resource, or the name of a template
        #[arg(value_name = "URI | TEMPLATE")]
        what: String,
        /// Variables of the template; those that are missing are asked for
        #[arg(value_name = "KEY=VALUE", value_parser = pair)]
        variables: Vec<(String, String)>,
    },
    /// Get a prompt; also /PROMPT
    #[command(after_help = "Example:\n  /code_review code=@main.rs language=rust")]
    Prompt {
        /// The prompt's name, or SERVER.NAME
        #[arg(value_name = "PROMPT")]
        name: String,
        #[command(flatten)]
        arguments: ArgumentInput,
    },
    /// Show the changes of a resource as they come
    Subscribe {
        /// The URI of the resource
        uri: String,
    },
    /// Show the changes of a resource no more
    Unsubscribe {
        /// The URI of the resource
        uri: String,
    },
    /// Show log messages of servers from this level on
    Level {
        /// The least severe level that is shown
        #[arg(value_parser = log_level())]
        level: LogLevel,
    },
    /// Select the model that sampling requests of servers name
    Model {
        /// One of those that `models` lists
        name: String,
    },
    /// Check that servers answer
    Ping(OfServer),
    /// Show what servers are and what they offer
    Info(OfServer),
    /// Show what servers say of themselves beyond the protocol
    Metadata(OfServer),
    /// Send any request; the JSON needs no quotes
    #[command(
        after_help = "Example:\n  raw tools/call {\"name\": \"echo\", \"arguments\": {\"message\": \"hi\"}}"
    )]
    Raw {
        /// The method
        method: String,
        /// The parameters, an object
        #[arg(value_name = "JSON", allow_hyphen_values = true)]
        params: Option<String>,
    },
    /// List the servers of this session and their states
    Servers,
    /// Prefer one server; without a name, none
    Use(OfServer),
    /// Connect to a server, or again to one of this session
    #[command(after_help = "Examples:\n  connect https://example.com/mcp\n  connect npx -y some-server\n  \
                            connect weather      (a name of `servers`, or of a configuration file)")]
    Connect {
        /// Where the server is, what it is called, or how it is started
        #[arg(value_name = "URL | NAME | COMMAND", required = true)]
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Close the connection to a server
    Disconnect {
        /// One that `servers` lists
        server: String,
    },
    /// Show the folders that servers may ask for, or set them
    Roots {
        /// The folders that replace those of before
        #[arg(value_name = "PATH")]
        paths: Vec<PathBuf>,
    },
    /// Show earlier lines
    History,
    /// Leave the shell; so does ctrl-d
    #[command(alias = "quit")]
    Exit,
    /// The help of a command.
    #[command(skip)]
    Help(String),
    /// What the help of a name that is no command is about: a tool, a prompt or a resource.
    #[command(skip)]
    Describe(String),
}

/// The server that a command is for.
#[derive(Debug, Clone, Default, PartialEq, Eq, clap::Args)]
pub(super) struct OfServer {
    /// One server; without a name the preferred one, or all
    pub(super) server: Option<String>,
}

/// The first words of the commands.
pub(super) fn names() -> Vec<String> {
    let help = std::iter::once("help".to_owned());
    Command::command().get_subcommands().map(|command| command.get_name().to_owned()).chain(help).collect()
}

/// The commands, one on each line.
fn help() -> String {
    let mut commands = Command::command();
    let rows: Vec<(String, String)> = commands
        .get_subcommands_mut()
        .map(|command| {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let usage = command.render_usage().to_string();
            (usage.trim_start_matches("Usage: ").replace(" [OPTIONS]", ""), about)
        })
        .chain([(
            "help [NAME]".to_owned(),
            "Show this, or more of a command, tool, prompt or resource".to_owned(),
        )])
        .collect();
    let width = rows.iter().map(|(usage, _)| usage.len()).max().unwrap_or(0);
    let mut text: String = rows.iter().map(|(usage, about)| format!("  {usage:width$}  {about}\n")).collect();
    text.push_str(
        "\nWhere several servers have a tool, a prompt or a resource of the same name, write SERVER.NAME.\n\
         Values take the type that the tool asks for; KEY:=JSON is JSON, KEY=@FILE the text of a file.\n\
         Tab completes. Ctrl-c ends the running call, and not the session.\n\
         A line that begins with a space is not kept in the history.\n",
    );
    text
}

/// What a line asks for; `None` for one that asks for nothing: an empty one, or a comment after `#`.
///
/// # Errors
///
/// The line cannot be understood.
pub(super) fn parse(line: &str) -> Result<Option<Command>, UsageError> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let words = words(line)?;
    if let [first, names @ ..] = words.as_slice()
        && first == "help"
    {
        return help_of(names).map(Some);
    }
    match Command::try_parse_from(words) {
        Ok(command) => Ok(Some(command)),
        Err(shown) if !shown.use_stderr() => Ok(Some(Command::Help(shown.to_string()))),
        Err(error) => Err(explained(&error)),
    }
}

fn help_of(names: &[String]) -> Result<Command, UsageError> {
    let name = match names {
        [] => return Ok(Command::Help(help())),
        [name] if name == "help" || name == "?" => return Ok(Command::Help(help())),
        [name] => name,
        _ => return Err(UsageError::new("help takes one name: of a command, tool, prompt or resource")),
    };
    Ok(match Command::command().find_subcommand_mut(name) {
        Some(command) => Command::Help(command.render_help().to_string()),
        None => Command::Describe(name.strip_prefix('/').unwrap_or(name).to_owned()),
    })
}

/// The words of a line, with the command that may be left out.
fn words(line: &str) -> Result<Vec<String>, UsageError> {
    let first = line.split(char::is_whitespace).next().unwrap_or_default();
    if first == "raw" {
        return raw(line);
    }
    let mut words = split_words(line)?;
    let Some(first) = words.first().cloned() else { return Ok(words) };
    match first.strip_prefix('/') {
        Some("") => return Err(UsageError::new("the name of a prompt is missing after `/`")),
        Some(name) => drop(words.splice(..1, ["prompt".to_owned(), name.to_owned()])),
        None if first == "?" => drop(words.splice(..1, ["help".to_owned()])),
        // clap takes the first `--` for itself.
        None if first == "connect" && words.get(1).is_some_and(|word| word == "--") => {
            words.insert(1, "--".to_owned());
        }
        None if first != "help" && Command::command().find_subcommand(&first).is_none() => {
            words.insert(0, "call".to_owned());
        }
        None => {}
    }
    Ok(words)
}

/// `raw METHOD JSON`: the JSON stands as it is, since quotes mean something else in it.
fn raw(line: &str) -> Result<Vec<String>, UsageError> {
    let mut parts = line.splitn(3, char::is_whitespace).map(str::trim).map(str::to_owned);
    let mut words: Vec<String> = parts.by_ref().take(2).filter(|word| !word.is_empty()).collect();
    let params = parts.next().filter(|params| !params.is_empty());
    if let Some(params) = params {
        // Quoted as for a shell.
        let quoted = params.starts_with(['\'', '"']);
        words.push(if quoted { split_words(&params)?.concat() } else { params });
    }
    Ok(words)
}

/// A line without the values of its arguments; `None` for one whose words cannot be told apart.
pub(super) fn without_values(line: &str) -> Option<String> {
    let mut words = words(line.trim()).ok()?;
    let takes_arguments =
        matches!(words.first().map(String::as_str), Some("call" | "prompt" | "read" | "raw"));
    if !takes_arguments || words.len() <= 2 {
        return Some(line.to_owned());
    }
    let is_key = |key: &str| key.chars().all(|c| c.is_alphanumeric() || "-_.:".contains(c));
    for word in words.iter_mut().skip(2) {
        *word = match word.split_once('=').filter(|(key, _)| is_key(key)) {
            Some((key, _)) => format!("{key}={MASK}"),
            None => MASK.to_owned(),
        };
    }
    Some(redact::joined(&words))
}

/// What clap has found, on one line: what is wrong, a tip, and how the command is written.
fn explained(error: &clap::Error) -> UsageError {
    let text = error.to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let paragraphs =
        text.split("\n\n").map(|paragraph| paragraph.split_whitespace().collect::<Vec<_>>().join(" "));
    let wanted = paragraphs.filter(|paragraph| !paragraph.is_empty() && !paragraph.starts_with("For more"));
    UsageError::new(wanted.collect::<Vec<_>>().join("; "))
}

/// The server that the words after `connect` mean, when they are not the name of one of the session.
///
/// # Errors
///
/// They mean none.
pub(super) fn target(words: &[String]) -> Result<Target, UsageError> {
    match words {
        [escape] if escape == "--" => Err(UsageError::new("connect: a command is missing after `--`")),
        [escape, command @ ..] if escape == "--" => Ok(Target::Command(command.to_vec())),
        [word] => Target::parse(word),
        command => Ok(Target::Command(command.to_vec())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str], json: Option<&str>) -> ArgumentInput {
        ArgumentInput {
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            json: json.map(str::to_owned),
        }
    }

    fn call(tool: &str, given: &[&str]) -> Command {
        Command::Call { tool: tool.to_owned(), arguments: words(given, None) }
    }

    fn raw(method: &str, params: Option<&str>) -> Command {
        Command::Raw { method: method.to_owned(), params: params.map(str::to_owned) }
    }

    fn of(server: Option<&str>) -> OfServer {
        OfServer { server: server.map(str::to_owned) }
    }

    #[test]
    fn lines_are_understood() {
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        for (line, expected) in [
            ("tools", Command::Tools(of(None))),
            ("templates a", Command::Templates(of(Some("a")))),
            ("list", Command::List { what: ListKind::All, of: of(None) }),
            ("list prompts b", Command::List { what: ListKind::Prompts, of: of(Some("b")) }),
            ("call echo message='a b'", call("echo", &["message=a b"])),
            ("  echo message=hi  ", call("echo", &["message=hi"])),
            ("a.read x=1", call("a.read", &["x=1"])),
            ("call read", call("read", &[])),
            (
                "sum b=2 --json '{\"a\": 1}'",
                Command::Call { tool: "sum".to_owned(), arguments: words(&["b=2"], Some("{\"a\": 1}")) },
            ),
            ("read memo://a/b", Command::Read { what: "memo://a/b".to_owned(), variables: Vec::new() }),
            (
                "read memos shelf=office name=a=b",
                Command::Read {
                    what: "memos".to_owned(),
                    variables: vec![pair("shelf", "office"), pair("name", "a=b")],
                },
            ),
            (
                "/a.review code=x",
                Command::Prompt { name: "a.review".to_owned(), arguments: words(&["code=x"], None) },
            ),
            (
                "prompt review",
                Command::Prompt { name: "review".to_owned(), arguments: ArgumentInput::default() },
            ),
            ("subscribe a:b", Command::Subscribe { uri: "a:b".to_owned() }),
            ("unsubscribe a:b", Command::Unsubscribe { uri: "a:b".to_owned() }),
            ("level warning", Command::Level { level: LogLevel::Warning }),
            ("ping", Command::Ping(of(None))),
            ("models a", Command::Models(of(Some("a")))),
            ("model gpt-4", Command::Model { name: "gpt-4".to_owned() }),
            ("metadata a", Command::Metadata(of(Some("a")))),
            ("info a", Command::Info(of(Some("a")))),
            ("raw ping", raw("ping", None)),
            ("raw tools/call {\"name\": \"a b\"}", raw("tools/call", Some("{\"name\": \"a b\"}"))),
            ("raw tools/call '{\"name\": 1}'", raw("tools/call", Some("{\"name\": 1}"))),
            ("rawest x=1", call("rawest", &["x=1"])),
            ("servers", Command::Servers),
            ("use a", Command::Use(of(Some("a")))),
            ("use", Command::Use(of(None))),
            ("connect a", Command::Connect { words: vec!["a".to_owned()] }),
            ("connect npx 'a b'", Command::Connect { words: vec!["npx".to_owned(), "a b".to_owned()] }),
            ("connect -- ./server", Command::Connect { words: vec!["--".to_owned(), "./server".to_owned()] }),
            ("disconnect a", Command::Disconnect { server: "a".to_owned() }),
            ("roots", Command::Roots { paths: Vec::new() }),
            ("roots /a b", Command::Roots { paths: vec![PathBuf::from("/a"), PathBuf::from("b")] }),
            ("history", Command::History),
            ("help echo", Command::Describe("echo".to_owned())),
            ("help /review", Command::Describe("review".to_owned())),
            ("help ?", Command::Help(help())),
            (
                "draw points:=[[0, 1]] label={\"en\": \"a b\"}",
                call("draw", &["points:=[[0, 1]]", "label={\"en\": \"a b\"}"]),
            ),
            (
                "sum --json {\"a\": 1}",
                Command::Call { tool: "sum".to_owned(), arguments: words(&[], Some("{\"a\": 1}")) },
            ),
            ("?", Command::Help(help())),
            ("quit", Command::Exit),
        ] {
            assert_eq!(parse(line), Ok(Some(expected)), "{line}");
        }
        for nothing in ["", "   ", "# tools"] {
            assert_eq!(parse(nothing), Ok(None), "{nothing:?}");
        }
    }

    #[test]
    fn other_lines_are_explained() {
        for (line, hint) in [
            ("call", "not provided: <TOOL>; Usage: call <TOOL> [KEY=VALUE]..."),
            ("echo message='a", "is not closed"),
            ("read", "not provided: <URI | TEMPLATE>"),
            ("read memos shelf", "expected KEY=VALUE"),
            ("/", "the name of a prompt is missing"),
            ("level loud", "debug, info"),
            ("level", "not provided: <LEVEL>"),
            ("model", "not provided: <NAME>"),
            ("list everything", "[possible values: tools"),
            ("tools a b", "unexpected argument 'b'"),
            ("exit now", "unexpected argument 'now'"),
            ("raw", "not provided: <METHOD>"),
            ("connect", "not provided"),
            ("echo --json", "a value is required for '--json <JSON>'"),
            ("subscribe", "not provided: <URI>"),
            ("help list tools", "help takes one name"),
            ("draw points:=[[0, 1] label=x", "points: is no JSON: expected `,` or `]`"),
        ] {
            let error = parse(line).unwrap_err().to_string();
            assert!(error.contains(hint), "{line}: {error}");
        }
    }

    #[test]
    fn what_to_connect_to_is_an_address_a_name_or_a_command() {
        let words = |line: &str| split_words(line).unwrap();
        let command = |line: &str| Target::Command(words(line));
        for (line, expected) in [
            ("a", Target::Named("a".to_owned())),
            ("npx 'a b'", command("npx 'a b'")),
            ("-- ./server", command("./server")),
            ("http://h/", Target::parse("http://h/").unwrap()),
        ] {
            assert_eq!(target(&words(line)), Ok(expected), "{line}");
        }
        for (line, hint) in [("./server", "after `--`"), ("h:80", "write http://h:80"), ("--", "is missing")]
        {
            let error = target(&words(line)).unwrap_err().to_string();
            assert!(error.contains(hint), "{line}: {error}");
        }
    }

    #[test]
    fn every_command_is_in_the_help_and_has_its_own() {
        let text = help();
        for name in names() {
            assert!(text.contains(&format!("  {name} ")), "{name}");
            if name != "help" {
                let Ok(Some(Command::Help(own))) = parse(&format!("help {name}")) else { panic!("{name}") };
                assert!(own.contains(&format!("Usage: {name}")), "{own}");
            }
        }
        for command in Command::command().get_subcommands() {
            for argument in command.get_arguments() {
                assert!(argument.get_help().is_some(), "{}: {}", command.get_name(), argument.get_id());
            }
        }
        for name in ["call", "read", "prompt", "raw", "connect"] {
            let Ok(Some(Command::Help(own))) = parse(&format!("help {name}")) else { panic!("{name}") };
            assert!(own.contains("Example"), "{own}");
        }
    }

    #[test]
    fn values_are_left_out_of_a_line() {
        for (line, kept) in [
            ("tools a", Some("tools a")),
            ("connect http://h/?a=b", Some("connect http://h/?a=b")),
            ("call echo", Some("call echo")),
            ("echo message=hush deep.key:=[1]", Some("call echo message=*** deep.key:=***")),
            ("echo 'hush hush' 'a b=hush'", Some("call echo *** ***")),
            ("echo --json {\"a\":\"b=c\"}", Some("call echo *** ***")),
            ("echo --json={\"a\":1}", Some("call echo --json=***")),
            ("/review code=hush", Some("prompt review code=***")),
            ("read memos shelf=hush", Some("read memos shelf=***")),
            ("raw tools/call {\"name\": \"hush\"}", Some("raw tools/call ***")),
            ("echo message='hush", None),
        ] {
            assert_eq!(without_values(line).as_deref(), kept, "{line}");
        }
    }
}
