//! Usage errors: printed without secrets, with hints, as text or as JSON.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use refmcp_client::redact::{self, MASK};

use super::{ExitReason, UsageError};
use crate::ui::error::document;
use crate::ui::output::print_aside;

/// A usage error as one of clap, so that all are printed alike.
pub(super) fn to_clap(error: &UsageError) -> clap::Error {
    clap::Error::raw(ErrorKind::ValueValidation, format!("{error}\n\nFor more information, try '--help'.\n"))
}

/// The same error; arguments that it quotes are without their secrets.
pub(super) fn redacted(mut error: clap::Error) -> clap::Error {
    let text = |error: &clap::Error, kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    let option = text(&error, ContextKind::InvalidArg).unwrap_or_default();
    for kind in [ContextKind::InvalidValue, ContextKind::InvalidArg, ContextKind::InvalidSubcommand] {
        let Some(quoted) = text(&error, kind) else { continue };
        if kind == ContextKind::InvalidArg && error.kind() != ErrorKind::UnknownArgument {
            // The option's own name.
            continue;
        }
        let is_secret = kind == ContextKind::InvalidValue
            && ["--header", "--env", "-e ", "--meta"].iter().any(|secret| option.starts_with(secret));
        let shown = if is_secret { MASK.to_owned() } else { redact::word(&quoted) };
        if shown != quoted {
            error.insert(kind, ContextValue::String(shown));
        }
    }
    error
}

/// The same error; where an argument is not expected, with what was probably meant.
pub(super) fn hinted(mut error: clap::Error, words: &[OsString]) -> clap::Error {
    if error.kind() == ErrorKind::UnknownArgument
        && let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg)
        && let Some(tip) = tip(&error, word, words)
    {
        error.remove(ContextKind::SuggestedArg);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    if error.kind() == ErrorKind::InvalidSubcommand
        && error.get(ContextKind::SuggestedSubcommand).is_none()
        && let Some(parent) =
            command(words).and_then(|name| super::definition().find_subcommand(name).cloned())
    {
        let names: Vec<&str> =
            parent.get_subcommands().filter(|it| !it.is_hide_set()).map(clap::Command::get_name).collect();
        let tip = format!("{} has {}", parent.get_name(), names.join(", "));
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

fn tip(error: &clap::Error, word: &str, words: &[OsString]) -> Option<String> {
    if let Some(command) = command_behind(word, words) {
        return Some(format!("options of a command stand behind it: refmcp {command} {word} …"));
    }
    let command = command(words).filter(|name| is_client_command(name))?;
    if error.get(ContextKind::SuggestedArg).is_some_and(is_near(word)) {
        return None;
    }
    match (command, word.strip_prefix("--")) {
        ("call" | "prompt", Some(name)) if !name.is_empty() => {
            let what = if command == "call" { "tool" } else { "prompt" };
            Some(format!("an argument of the {what} is written {name}=VALUE"))
        }
        (_, None) if !word.starts_with('-') => Some(format!(
            "a command that starts a server stands at the end: refmcp {command} … -- COMMAND ARGUMENT…"
        )),
        _ => None,
    }
}

/// The command that follows an option of its own.
fn command_behind<'a>(option: &str, words: &'a [OsString]) -> Option<&'a str> {
    let name = option.split('=').next().unwrap_or_default();
    let words: Vec<&str> = words.iter().skip(1).map_while(|word| word.to_str()).collect();
    let at = words.iter().take_while(|word| **word != "--").position(|word| is_client_command(word))?;
    let is_before = words.get(..at)?.iter().any(|word| word.split('=').next() == Some(name));
    let definition = super::definition();
    let command = words.get(at)?;
    let is_known = definition.find_subcommand(command)?.get_arguments().any(|known| {
        known.get_long().is_some_and(|long| name == format!("--{long}"))
            || known.get_short().is_some_and(|short| name == format!("-{short}"))
    });
    (is_before && is_known).then_some(command)
}

fn is_client_command(word: &str) -> bool {
    COMMANDS_WITH_TARGET.contains(&word)
}

/// The name of the command: the first word that is neither an option nor the value of one.
fn command(words: &[OsString]) -> Option<&str> {
    let mut words = words.iter().skip(1).filter_map(|word| word.to_str());
    loop {
        match words.next()? {
            "--log" | "--log-format" => drop(words.next()),
            option if option.starts_with('-') => {}
            name => return Some(name),
        }
    }
}

/// Commands whose target can be a command after `--`.
const COMMANDS_WITH_TARGET: [&str; 15] = [
    "list", "call", "task", "read", "prompt", "complete", "watch", "info", "raw", "check", "replay", "shell",
    "bridge", "relay", "install",
];

/// Whether an option that clap proposes is probably what was meant.
fn is_near(word: &str) -> impl Fn(&ContextValue) -> bool {
    move |proposed| match proposed {
        ContextValue::String(proposed) => strsim::jaro_winkler(proposed, word) >= NEAR,
        _ => false,
    }
}

/// The likeness of two options, from 0 to 1, for one to be a typing error of the other.
const NEAR: f64 = 0.9;

/// Prints it; where `--output` asks for JSON, as JSON.
pub(super) fn print(error: &clap::Error, words: &[OsString]) -> std::io::Result<()> {
    if !error.use_stderr() || !ask_for_json(words) {
        return error.print();
    }
    let text = error.to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    // The usage and where there is more help are for people.
    let mut paragraphs = text.split("\n\n").map(str::trim);
    let what = paragraphs.next().unwrap_or(text);
    let tip = paragraphs.find_map(|paragraph| paragraph.strip_prefix("tip: "));
    let message = tip.map_or_else(|| what.to_owned(), |tip| format!("{what}; {tip}"));
    print_aside(&format!("{}\n", document(&message, ExitReason::Usage, None)));
    Ok(())
}

/// Whether `--output` asks for JSON, as far as that can be told of arguments that are not understood.
fn ask_for_json(words: &[OsString]) -> bool {
    let words: Vec<_> =
        words.iter().take_while(|word| *word != "--").map(|word| word.to_string_lossy()).collect();
    let is_json = |value: &str| matches!(value, "json" | "jsonl");
    let joined = words
        .iter()
        .any(|word| word.strip_prefix("--output=").or_else(|| word.strip_prefix("-o")).is_some_and(is_json));
    joined || words.windows(2).any(|pair| matches!(&*pair[0], "--output" | "-o") && is_json(&pair[1]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{parse_from, split_words};

    fn error(line: &str) -> String {
        let words = split_words(&format!("refmcp {line}")).unwrap();
        let words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
        let error = parse_from(words.clone()).unwrap_err();
        redacted(hinted(error, &words)).to_string()
    }

    #[test]
    fn what_was_mistyped_is_quoted_without_secrets() {
        for line in [
            "list -H 'Bearer hush' http://h/",
            "list -H 'Bearer hu:hush' http://h/",
            "list -e hush http://h/",
            "list --env hush -- x",
            "list --meta hush http://h/",
            "list http://h/?key=hush http://h/?key=hush",
            "list tools a http://h/?key=hush",
            "read file://me:hush@h/ http://h/?key=hush",
            "list http://[h?key=hush",
            "list ftp://me:hush@h/",
            "list h:80/?key=hush",
            "serve --public-url u:hush@h",
            "serve --public-url u:hush@h/?key=hush",
            "list me:hush@h:80/",
            "list ./x://h?key=hush",
            "call http://h/?key=hush tool -- x",
            "bridge --from http://h/?key=hush --to http://h/?key=hush -- x",
            "bridge --from https://h/?key=hush --to x",
            "http://h/?key=hush",
            "list --token=hush http://h/",
            "log extra http://h/?key=hush",
            "--cli http://h/?k=hush x --method tools/list",
        ] {
            let said = error(line);
            assert!(!said.contains("hush"), "{line}: {said}");
        }
    }

    #[test]
    fn what_was_probably_meant_is_said() {
        for (line, tip) in [
            ("call sum --a 1 -- x", "an argument of the tool is written a=VALUE"),
            ("prompt review --code=x -- x", "an argument of the prompt is written code=VALUE"),
            ("auth lst", "'list'"),
            ("help nosuch", "completions, man, help"),
            ("auth whoami", "auth has login, status, logout, keyring"),
            ("install vscode npx server", "stands at the end: refmcp install … -- COMMAND"),
            ("call echo message=hi http://h/", "the target comes first: write http://h/ before \"echo\""),
            ("list --timeout 1e300 x", "at most"),
            ("list --timeout=-1 x", "must be more than 0"),
            ("list --root /nonexist x", "there is no folder /nonexist"),
            ("info npx server", "stands at the end: refmcp info … -- COMMAND"),
            ("call x sum --timeot 1", "'--timeout'"),
            ("list --tokn", "unexpected argument '--tokn'"),
            ("list -H foo x", "'--header <NAME: VALUE>'"),
            ("log x", "unexpected argument 'x'"),
            ("--output json list x", "options of a command stand behind it: refmcp list --output …"),
            ("-y call x y", "refmcp call -y …"),
            ("list --timeout 0 x", "must be more than 0"),
            ("--log info info http://h/ x", "refmcp info … --"),
        ] {
            let said = error(line);
            assert!(said.contains(tip), "{line}: {said}");
        }
        assert!(!error("call sum --a 1 -- x").contains("--header"));
        assert!(!error("auth login list info").contains("COMMAND"));
    }

    #[test]
    fn json_is_asked_for_before_the_command() {
        let ask = |line: &str| {
            ask_for_json(&split_words(line).unwrap().into_iter().map(OsString::from).collect::<Vec<_>>())
        };
        for line in
            ["refmcp list -o json x", "refmcp list --output=json x y", "refmcp -ojsonl", "x --output json"]
        {
            assert!(ask(line), "{line}");
        }
        for line in ["refmcp list x", "refmcp list -o text x", "refmcp list -- x -o json", "refmcp x json -o"]
        {
            assert!(!ask(line), "{line}");
        }
    }
}
