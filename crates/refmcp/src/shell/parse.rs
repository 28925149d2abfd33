//! From a line to what it asks for. Nothing is known here of servers: a first word that is no command is a tool.

use std::path::PathBuf;

use refmcp_client::model::LogLevel;

use crate::args::{ListKind, Target, UsageError, split_words};
use crate::arguments::ArgumentInput;

/// What a line asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Command {
    /// Show what servers offer; of one, or of all.
    List { what: ListKind, of: Option<String> },
    /// Call a tool.
    Call { tool: String, arguments: ArgumentInput },
    /// Read a resource, or one of a template with these variables.
    Read { what: String, variables: Vec<(String, String)> },
    /// Get a prompt.
    Prompt { name: String, arguments: ArgumentInput },
    /// Hear when a resource changes.
    Subscribe(String),
    /// Hear of it no more.
    Unsubscribe(String),
    /// From which level on log messages are wanted.
    Level(LogLevel),
    /// Whether a server is there.
    Ping { of: Option<String> },
    /// Who a server is.
    Info { of: Option<String> },
    /// Which model requests for a model should name.
    Model(String),
    /// What a server says of itself beyond the protocol.
    Metadata { of: Option<String> },
    /// Any request.
    Raw { method: String, params: Option<String> },
    /// Which servers there are.
    Servers,
    /// Prefer one server, or none.
    Use(Option<String>),
    /// Connect to a server: one of the session by its name, or another one.
    Connect(Vec<String>),
    /// Leave a server.
    Disconnect(String),
    /// Show the folders that servers know of, or tell of others.
    Roots(Vec<PathBuf>),
    /// What was typed before.
    History,
    /// What can be typed.
    Help,
    /// Leave.
    Exit,
}

/// The commands: their first word, what follows it, and what they do.
pub(super) const COMMANDS: [(&str, &str, &str); 23] = [
    ("tools", "[SERVER]", "what can be called"),
    ("resources", "[SERVER]", "what can be read"),
    ("templates", "[SERVER]", "what can be read once variables are filled in"),
    ("prompts", "[SERVER]", "what can be asked of a model"),
    ("models", "[SERVER]", "which models the server knows"),
    ("call", "TOOL [KEY=VALUE]...", "call a tool; `call` can be left out"),
    ("read", "URI | TEMPLATE [KEY=VALUE]...", "read a resource"),
    ("prompt", "PROMPT [KEY=VALUE]...", "get a prompt; also /PROMPT"),
    ("subscribe", "URI", "be told when a resource changes"),
    ("unsubscribe", "URI", "be told no more"),
    ("level", "LEVEL", "the least severe log messages to be sent"),
    ("model", "NAME", "the model that requests for a model name"),
    ("ping", "[SERVER]", "whether a server answers"),
    ("info", "[SERVER]", "who a server is and what it can do"),
    ("metadata", "[SERVER]", "what a server says of itself beyond the protocol"),
    ("raw", "METHOD [JSON]", "any request"),
    ("servers", "", "which servers there are, and how they are"),
    ("use", "[SERVER]", "prefer one server; without a name, none"),
    ("connect", "URL | NAME | COMMAND...", "connect to a server; to one of these by its name, again"),
    ("disconnect", "SERVER", "leave a server"),
    ("roots", "[PATH]...", "the folders that servers know of, or tell of others"),
    ("history", "", "what was typed before"),
    ("help", "", "this"),
];

/// The help, as text.
pub(super) fn help() -> String {
    let left = |(word, rest, _): &(&str, &str, &str)| format!("{word} {rest}");
    let width = COMMANDS.iter().map(|command| left(command).len()).max().unwrap_or(0);
    let mut text = String::new();
    for command in &COMMANDS {
        text.push_str(&format!("  {:width$}  {}\n", left(command), command.2));
    }
    text.push_str(&format!("  {:width$}  leave; so does ctrl-d\n", "exit"));
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
    if let Some(raw) = raw(line) {
        return raw.map(Some);
    }
    let mut words = split_words(line)?.into_iter();
    let Some(first) = words.next() else { return Ok(None) };
    let rest: Vec<String> = words.collect();
    if let Some(name) = first.strip_prefix('/') {
        let name = name.to_owned();
        if name.is_empty() {
            return Err(UsageError::new("the prompt's name is missing after `/`"));
        }
        return Ok(Some(Command::Prompt { name, arguments: arguments(rest)? }));
    }
    if let Some(what) = ListKind::parse(&first).filter(|what| *what != ListKind::All) {
        return Ok(Some(Command::List { what, of: at_most_one(&first, rest)? }));
    }
    Ok(Some(match first.as_str() {
        "list" => {
            let mut rest = rest.into_iter();
            let what = rest.next().map_or(Some(ListKind::All), |word| ListKind::parse(&word));
            let what = what.ok_or_else(|| {
                UsageError::new("list: expected tools, resources, templates, prompts, models or all")
            })?;
            Command::List { what, of: at_most_one("list", rest.collect())? }
        }
        "call" => {
            let (tool, rest) = named("call", "the tool's name", rest)?;
            Command::Call { tool, arguments: arguments(rest)? }
        }
        "prompt" => {
            let (name, rest) = named("prompt", "the prompt's name", rest)?;
            Command::Prompt { name, arguments: arguments(rest)? }
        }
        "read" => {
            let (what, rest) = named("read", "the resource's address or the template's name", rest)?;
            Command::Read { what, variables: rest.iter().map(|word| pair(word)).collect::<Result<_, _>>()? }
        }
        "subscribe" => Command::Subscribe(exactly_one("subscribe", "the resource's address", rest)?),
        "unsubscribe" => Command::Unsubscribe(exactly_one("unsubscribe", "the resource's address", rest)?),
        "level" => {
            let levels = LogLevel::ALL.map(LogLevel::as_str).join(", ");
            let word = exactly_one("level", &format!("one of {levels}"), rest)?;
            let level = word.parse::<LogLevel>();
            Command::Level(level.map_err(|_| UsageError::new(format!("level: expected one of {levels}")))?)
        }
        "ping" => Command::Ping { of: at_most_one("ping", rest)? },
        "info" => Command::Info { of: at_most_one("info", rest)? },
        "model" => Command::Model(exactly_one("model", "the model's name", rest)?),
        "metadata" => Command::Metadata { of: at_most_one("metadata", rest)? },
        "servers" => nothing_else("servers", &rest, Command::Servers)?,
        "use" => Command::Use(at_most_one("use", rest)?),
        "connect" => {
            if rest.is_empty() {
                return Err(nothing_to_connect());
            }
            Command::Connect(rest)
        }
        "disconnect" => Command::Disconnect(exactly_one("disconnect", "the server's name", rest)?),
        "roots" => Command::Roots(rest.into_iter().map(PathBuf::from).collect()),
        "history" => nothing_else("history", &rest, Command::History)?,
        "help" | "?" => Command::Help,
        "exit" | "quit" => nothing_else("exit", &rest, Command::Exit)?,
        _ => Command::Call { tool: first, arguments: arguments(rest)? },
    }))
}

/// `raw METHOD JSON`: the JSON stands as it is, since quotes mean something else in it.
fn raw(line: &str) -> Option<Result<Command, UsageError>> {
    let rest = line.strip_prefix("raw")?;
    if !rest.is_empty() && !rest.starts_with(char::is_whitespace) {
        return None;
    }
    let rest = rest.trim_start();
    if rest.is_empty() {
        return Some(Err(UsageError::new("raw: the method is missing")));
    }
    let (method, params) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let params = params.trim_start();
    let params = match params.chars().next() {
        None => Ok(None),
        // Quoted as for a shell.
        Some('\'' | '"') => split_words(params).map(|words| Some(words.concat())),
        Some(_) => Ok(Some(params.to_owned())),
    };
    Some(params.map(|params| Command::Raw { method: method.to_owned(), params }))
}

fn arguments(words: Vec<String>) -> Result<ArgumentInput, UsageError> {
    let mut all = ArgumentInput::default();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        if word == "--json" {
            let json = words.next();
            all.json = Some(json.ok_or_else(|| UsageError::new("an object is missing after --json"))?);
        } else {
            all.words.push(word);
        }
    }
    Ok(all)
}

/// The server that the words after `connect` mean, when they are not the name of one of the session.
///
/// # Errors
///
/// They mean none.
pub(super) fn target(mut words: Vec<String>) -> Result<Target, UsageError> {
    if words.first().is_some_and(|word| word == "--") {
        words.remove(0);
    } else if let [word] = words.as_slice() {
        return Target::parse(word);
    }
    if words.is_empty() {
        return Err(nothing_to_connect());
    }
    Ok(Target::Command(words))
}

fn nothing_to_connect() -> UsageError {
    UsageError::new("connect: an address, a name or a command is missing")
}

fn pair(word: &str) -> Result<(String, String), UsageError> {
    let pair = word.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
    pair.ok_or_else(|| UsageError::new(format!("{word:?}: expected KEY=VALUE")))
}

fn named(command: &str, what: &str, words: Vec<String>) -> Result<(String, Vec<String>), UsageError> {
    let mut words = words.into_iter();
    let name = words.next().ok_or_else(|| UsageError::new(format!("{command}: {what} is missing")))?;
    Ok((name, words.collect()))
}

fn exactly_one(command: &str, what: &str, words: Vec<String>) -> Result<String, UsageError> {
    let (word, rest) = named(command, what, words)?;
    nothing_else(command, &rest, word)
}

fn at_most_one(command: &str, words: Vec<String>) -> Result<Option<String>, UsageError> {
    let mut words = words.into_iter();
    let word = words.next();
    nothing_else(command, &words.collect::<Vec<_>>(), word)
}

fn nothing_else<T>(command: &str, words: &[String], otherwise: T) -> Result<T, UsageError> {
    match words.first() {
        Some(word) => Err(UsageError::new(format!("{command}: {word:?} is one word too many"))),
        None => Ok(otherwise),
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

    fn some(word: &str) -> Option<String> {
        Some(word.to_owned())
    }

    #[test]
    fn lines_are_understood() {
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        for (line, expected) in [
            ("tools", Command::List { what: ListKind::Tools, of: None }),
            ("templates a", Command::List { what: ListKind::Templates, of: some("a") }),
            ("list", Command::List { what: ListKind::All, of: None }),
            ("list prompts b", Command::List { what: ListKind::Prompts, of: some("b") }),
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
            ("subscribe a:b", Command::Subscribe("a:b".to_owned())),
            ("unsubscribe a:b", Command::Unsubscribe("a:b".to_owned())),
            ("level warning", Command::Level(LogLevel::Warning)),
            ("ping", Command::Ping { of: None }),
            ("models a", Command::List { what: ListKind::Models, of: some("a") }),
            ("model gpt-4", Command::Model("gpt-4".to_owned())),
            ("metadata a", Command::Metadata { of: some("a") }),
            ("info a", Command::Info { of: some("a") }),
            ("raw ping", raw("ping", None)),
            ("raw tools/call {\"name\": \"a b\"}", raw("tools/call", Some("{\"name\": \"a b\"}"))),
            ("raw tools/call '{\"name\": 1}'", raw("tools/call", Some("{\"name\": 1}"))),
            ("rawest x=1", call("rawest", &["x=1"])),
            ("servers", Command::Servers),
            ("use a", Command::Use(some("a"))),
            ("use", Command::Use(None)),
            ("connect a", Command::Connect(vec!["a".to_owned()])),
            ("connect npx 'a b'", Command::Connect(vec!["npx".to_owned(), "a b".to_owned()])),
            ("connect -- ./server", Command::Connect(vec!["--".to_owned(), "./server".to_owned()])),
            ("disconnect a", Command::Disconnect("a".to_owned())),
            ("roots", Command::Roots(Vec::new())),
            ("roots /a b", Command::Roots(vec![PathBuf::from("/a"), PathBuf::from("b")])),
            ("history", Command::History),
            ("?", Command::Help),
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
            ("call", "the tool's name is missing"),
            ("echo message='a", "is not closed"),
            ("read", "is missing"),
            ("read memos shelf", "expected KEY=VALUE"),
            ("/", "missing after `/`"),
            ("level loud", "debug, info"),
            ("level", "debug, info"),
            ("model", "the model's name is missing"),
            ("list everything", "expected tools"),
            ("tools a b", "one word too many"),
            ("exit now", "one word too many"),
            ("raw", "the method is missing"),
            ("connect", "is missing"),
            ("echo --json", "after --json"),
            ("subscribe", "is missing"),
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
            assert_eq!(target(words(line)), Ok(expected), "{line}");
        }
        for (line, hint) in [("./server", "after `--`"), ("h:80", "write http://h:80"), ("--", "is missing")]
        {
            let fault = target(words(line)).unwrap_err().to_string();
            assert!(fault.contains(hint), "{line}: {fault}");
        }
    }

    #[test]
    fn every_command_is_in_the_help() {
        let text = help();
        for (word, ..) in COMMANDS {
            assert!(text.contains(&format!("  {word} ")), "{word}");
            let understood = parse(word);
            assert!(!matches!(&understood, Ok(Some(Command::Call { .. }))), "{word}: {understood:?}");
        }
    }
}
