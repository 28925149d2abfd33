//! The commands of the shell, as clap reads them. A first word that is no command is a tool, and `/NAME` a prompt.

use std::path::PathBuf;

use clap::{CommandFactory, Parser};
use refmcp_client::model::LogLevel;

use crate::args::{ListKind, Target, UsageError, log_level, pair, split_words};
use crate::arguments::ArgumentInput;

/// What a line asks for.
#[derive(Debug, Clone, PartialEq, Eq, Parser)]
#[command(no_binary_name = true, disable_version_flag = true)]
pub(super) enum Command {
    /// What can be called
    Tools(OfServer),
    /// What can be read
    Resources(OfServer),
    /// What can be read once variables are filled in
    Templates(OfServer),
    /// What can be asked of a model
    Prompts(OfServer),
    /// Which models the server knows
    Models(OfServer),
    /// All of these, or one of them
    List {
        #[arg(value_enum, default_value = "all")]
        what: ListKind,
        #[command(flatten)]
        of: OfServer,
    },
    /// Call a tool; `call` can be left out
    Call {
        tool: String,
        #[command(flatten)]
        arguments: ArgumentInput,
    },
    /// Read a resource, or one of a template with these variables
    Read {
        #[arg(value_name = "URI | TEMPLATE")]
        what: String,
        #[arg(value_name = "KEY=VALUE", value_parser = pair)]
        variables: Vec<(String, String)>,
    },
    /// Get a prompt; also /PROMPT
    Prompt {
        #[arg(value_name = "PROMPT")]
        name: String,
        #[command(flatten)]
        arguments: ArgumentInput,
    },
    /// Be told when a resource changes
    Subscribe { uri: String },
    /// Be told no more
    Unsubscribe { uri: String },
    /// The least severe log messages to be sent
    Level {
        #[arg(value_parser = log_level())]
        level: LogLevel,
    },
    /// The model that requests for a model name
    Model { name: String },
    /// Whether a server answers
    Ping(OfServer),
    /// Who a server is and what it can do
    Info(OfServer),
    /// What a server says of itself beyond the protocol
    Metadata(OfServer),
    /// Any request; the JSON needs no quotes
    Raw {
        method: String,
        #[arg(value_name = "JSON", allow_hyphen_values = true)]
        params: Option<String>,
    },
    /// Which servers there are, and how they are
    Servers,
    /// Prefer one server; without a name, none
    Use(OfServer),
    /// Connect to a server; to one of these by its name, again
    Connect {
        #[arg(value_name = "URL | NAME | COMMAND", required = true)]
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Leave a server
    Disconnect { server: String },
    /// The folders that servers know of, or tell of others
    Roots {
        #[arg(value_name = "PATH")]
        paths: Vec<PathBuf>,
    },
    /// What was typed before
    History,
    /// Leave; so does ctrl-d
    #[command(alias = "quit")]
    Exit,
    /// The help that was asked for.
    #[command(skip)]
    Help(String),
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
        .chain([("help [COMMAND]".to_owned(), "This, or more of one command".to_owned())])
        .collect();
    let width = rows.iter().map(|(usage, _)| usage.len()).max().unwrap_or(0);
    let mut text: String = rows.iter().map(|(usage, about)| format!("  {usage:width$}  {about}\n")).collect();
    text.push_str(
        "\nWhere several servers have a tool, a prompt or a resource of the same name, write SERVER.NAME.\n\
         Values are typed as the tool wants them; KEY:=JSON is JSON, KEY=@FILE the text of a file.\n\
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
    if words == ["help"] {
        return Ok(Some(Command::Help(help())));
    }
    match Command::try_parse_from(words) {
        Ok(command) => Ok(Some(command)),
        Err(shown) if !shown.use_stderr() => Ok(Some(Command::Help(shown.to_string()))),
        Err(fault) => Err(explained(&fault)),
    }
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

/// What clap has found, on one line: what is wrong, a tip, and how the command is written.
fn explained(fault: &clap::Error) -> UsageError {
    let text = fault.to_string();
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
        ] {
            let fault = parse(line).unwrap_err().to_string();
            assert!(fault.contains(hint), "{line}: {fault}");
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
            let fault = target(&words(line)).unwrap_err().to_string();
            assert!(fault.contains(hint), "{line}: {fault}");
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
    }
}
