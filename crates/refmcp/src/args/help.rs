//! Help beyond the descriptions of options: examples, the manual page, completion scripts.

use std::ffi::OsString;
use std::io::{self, Write};

use clap::{CommandFactory, Parser, ValueEnum};

use crate::args::{Args, OutputFormat, RecordOptions, ServerStderr, SharedOptions};
use crate::completion;

/// The examples of every command, each behind a line `# COMMAND`. A test parses every one of them.
const EXAMPLES: &str = include_str!("help/examples.txt");

/// The two ways to write a command that drives one server, with these words besides the target.
pub(super) fn usages(command: &str, words: &str) -> String {
    let (start, words) = (format!("refmcp {command} [OPTIONS]"), format!(" {words}"));
    let words = words.trim_end();
    format!("{start} <TARGET>{words}\n       {start}{words} -- <COMMAND>...")
}

/// What the help of a command shows below its options.
pub(super) fn examples(command: &str) -> &'static str {
    let section = EXAMPLES.split_once(&format!("# {command}\n")).map_or("", |(_, section)| section);
    section.split("\n\n#").next().unwrap_or(section).trim_end()
}

// A line, as the script of a shell hands it over.
#[derive(Debug, clap::Args)]
pub(crate) struct LineArgs {
    /// The shell whose script asks.
    pub(crate) shell: CompletionShell,
    /// What the shell knows of the line.
    #[arg(last = true)]
    pub(crate) words: Vec<OsString>,
}

/// A shell whose script asks refmcp for candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CompletionShell {
    /// GNU Bash.
    Bash,
    /// The Z shell.
    Zsh,
    /// fish.
    Fish,
}

/// Writes the script that completes words in this shell.
///
/// # Errors
///
/// The script cannot be written.
pub(crate) fn print_completions(shell: clap_complete::Shell, to: &mut impl Write) -> io::Result<()> {
    if let Some(script) = completion::script(shell) {
        return to.write_all(script.as_bytes());
    }
    // The generator panics when it cannot write, so it writes to memory.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "refmcp", &mut script);
    to.write_all(&script)
}

/// The definition of the command line, with the options of every command.
pub(crate) fn definition() -> clap::Command {
    let mut command = Args::command();
    command.build();
    command
}

/// The shared options alone.
#[derive(Debug, Parser)]
struct SharedArgs {
    #[command(flatten)]
    shared: SharedOptions,
}

/// The shared options of a line that is still being typed: `values` are those that have a value, by their ids. Options
/// with an effect (consent, files to write, output) are reset: completing a line must not do what running it would.
pub(crate) fn parse_shared_options(values: &[(&str, String)]) -> Option<SharedOptions> {
    let definition = SharedArgs::command();
    let words = values.iter().filter_map(|(id, value)| {
        let option = definition.get_arguments().find(|option| option.get_id() == *id)?;
        Some(format!("--{}={value}", option.get_long()?))
    });
    let shared = SharedArgs::try_parse_from(std::iter::once("refmcp".to_owned()).chain(words)).ok()?.shared;
    Some(SharedOptions {
        record: RecordOptions::default(),
        server_stderr: ServerStderr::Hide,
        explain: false,
        yes: false,
        sampler: None,
        roots: Vec::new(),
        log_level: None,
        model: None,
        output: OutputFormat::Text,
        ..shared
    })
}

/// Writes what the help says below the options, line by line: how arguments are written, and examples.
fn render_examples(command: &clap::Command, to: &mut impl Write) -> io::Result<()> {
    let Some(text) = command.get_after_help() else { return Ok(()) };
    writeln!(to, ".PP\n.nf")?;
    for line in text.to_string().lines() {
        writeln!(to, "{}", literal(line))?;
    }
    writeln!(to, ".fi")
}

/// A line that troff shows as it is.
fn literal(line: &str) -> String {
    let escaped = line.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq");
    // At the beginning of a line, a dot would be a request.
    format!("\\&{escaped}")
}

/// Commands that are shown.
fn shown(command: &clap::Command) -> impl Iterator<Item = &clap::Command> {
    command.get_subcommands().filter(|sub| sub.get_name() != "help" && !sub.is_hide_set())
}

/// Writes the commands of a command, by the names of their sections in this page.
fn render_commands(command: &clap::Command, to: &mut impl Write) -> io::Result<()> {
    for sub in shown(command) {
        let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
        writeln!(to, ".TP\n\\fB{}\\fR\n{}", literal(sub.get_name()), literal(&about))?;
    }
    Ok(())
}

/// Writes the section of a command, and those of its own commands.
fn render_section(path: &str, command: &clap::Command, to: &mut impl Write) -> io::Result<()> {
    let path = format!("{path} {}", command.get_name());
    writeln!(to, ".SH \"{}\"", path.to_uppercase())?;
    let page = clap_mangen::Man::new(command.clone());
    let mut parts = Vec::new();
    page.render_description_section(&mut parts)?;
    page.render_synopsis_section(&mut parts)?;
    page.render_options_section(&mut parts)?;
    // These are parts of this section, which the generator takes for sections of a page.
    for line in String::from_utf8_lossy(&parts).lines() {
        match line.strip_prefix(".SH ") {
            Some(title) => writeln!(to, ".SS {title}")?,
            None => writeln!(to, "{line}")?,
        }
    }
    if shown(command).next().is_some() {
        writeln!(to, ".SS COMMANDS")?;
        render_commands(command, to)?;
    }
    render_examples(command, to)?;
    shown(command).try_for_each(|sub| render_section(&path, sub, to))
}

/// What the process exits with.
const EXIT_STATUS: [(&str, &str); 8] = [
    ("0", "It worked."),
    (
        "1",
        "The command cannot be understood, the arguments do not fit, or the server answered with an error.",
    ),
    ("3", "The server wants authorization."),
    (
        "4",
        "The server cannot be reached or started, does not speak the protocol or breaks it, or does not answer in time.",
    ),
    ("5", "The tool ran and says that it failed."),
    (
        "6",
        "A rule that the specification demands was broken; with --diff, one that was not broken so before; what is replayed \
         or compared differs from the recording; a skill is not what its entry says.",
    ),
    ("7", "Nothing was judged: no rule was kept or broken, or the recording has nothing to replay."),
    ("129, 130, 143", "SIGHUP, SIGINT (ctrl-c) or SIGTERM ended the command."),
];

/// Writes the manual page, with a section for every command.
///
/// # Errors
///
/// The page cannot be written.
pub(crate) fn print_manual(to: &mut impl Write) -> io::Result<()> {
    let command = definition();
    let page = clap_mangen::Man::new(command.clone());
    page.render_title(to)?;
    page.render_name_section(to)?;
    page.render_synopsis_section(to)?;
    page.render_description_section(to)?;
    page.render_options_section(to)?;
    writeln!(to, ".SH COMMANDS\nEach has a section below.")?;
    render_commands(&command, to)?;
    writeln!(to, ".SH EXAMPLES")?;
    render_examples(&command, to)?;
    writeln!(to, ".SH \"EXIT STATUS\"")?;
    for (code, when) in EXIT_STATUS {
        writeln!(to, ".TP\n{code}\n{}", literal(when))?;
    }
    shown(&command).try_for_each(|sub| render_section("refmcp", sub, to))?;
    page.render_version_section(to)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::path::PathBuf;

    use clap::{Command, CommandFactory};

    use super::*;
    use crate::args::{Args, ExitReason, parse_from, split_words};

    /// Every command with its path, the program first.
    fn commands(command: &Command, path: &str, all: &mut Vec<(String, Command)>) {
        let path = format!("{path} {}", command.get_name()).trim_start().to_owned();
        let shown = |sub: &&Command| sub.get_name() != "help" && !sub.is_hide_set();
        for sub in command.get_subcommands().filter(shown) {
            commands(sub, &path, all);
        }
        all.push((path, command.clone()));
    }

    /// The words that are ours in an example's line, which may have other commands and files around it.
    fn ours(line: &str) -> String {
        let line = line.strip_prefix("source <(").and_then(|line| line.strip_suffix(')')).unwrap_or(line);
        let line =
            line.rsplit_once("| refmcp ").map_or(line.to_owned(), |(_, rest)| format!("refmcp {rest}"));
        let end = [" > ", " | "].iter().filter_map(|end| line.find(end)).min().unwrap_or(line.len());
        line[..end].to_owned()
    }

    #[test]
    fn every_command_has_examples_that_can_be_typed() {
        let mut built = Args::command();
        built.build();
        let mut all = Vec::new();
        commands(&built, "", &mut all);
        assert!(all.len() > 20, "{}", all.len());
        for (path, command) in all {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let (_, examples) = help.split_once("Examples:\n").unwrap_or_else(|| panic!("{path} has none"));
            let lines: Vec<&str> =
                examples.lines().filter(|line| !line.starts_with("   ")).map(str::trim).collect();
            assert!((2..=6).contains(&lines.len()), "{path}: {lines:?}");
            for line in lines {
                let typed = ours(line);
                assert!(typed.contains(&path) || path == "refmcp", "{path}: {line}");
                let words = split_words(&typed).unwrap().into_iter().map(OsString::from);
                if let Err(error) = parse_from(words) {
                    panic!("{line}: {error}");
                }
            }
            assert!(help.lines().all(|line| line.chars().count() <= 120), "{path}: a line is too long");
        }
    }

    #[test]
    fn completing_a_line_resets_options_with_an_effect() {
        let values = [
            ("config", "-f"),
            ("headers", "A: b"),
            ("record", "t"),
            ("sampler", "s"),
            ("roots", "r"),
            ("output", "jsonl"),
            ("log_level", "debug"),
            ("prompt", "p"),
            ("log", "trace"),
        ];
        let values = values.map(|(id, value)| (id, value.to_owned()));
        let shared = parse_shared_options(&values).unwrap();
        assert!(!shared.yes && !shared.explain && shared.record.record.is_none() && shared.sampler.is_none());
        assert!(shared.output == OutputFormat::Text && shared.roots.is_empty() && shared.log_level.is_none());
        assert_eq!((shared.config, shared.headers.len()), (Some(PathBuf::from("-f")), 1));
        assert!(parse_shared_options(&[("timeout", "soon".to_owned())]).is_none());
    }

    #[test]
    fn every_shell_gets_a_script_that_knows_or_asks() {
        for shell in clap_complete::Shell::value_variants() {
            let mut script = Vec::new();
            print_completions(*shell, &mut script).unwrap();
            let script = String::from_utf8(script).unwrap();
            let asks = script.contains(&format!("refmcp __complete {shell} -- "));
            let knows =
                ["serve", "call", "complete", "bridge", "trust"].iter().all(|word| script.contains(word));
            assert!(asks || knows, "{shell}");
        }
    }

    #[test]
    fn the_page_has_every_command() {
        let mut page = Vec::new();
        print_manual(&mut page).unwrap();
        let page = String::from_utf8(page).unwrap();
        assert!(page.contains(".TH refmcp"), "{page}");
        for command in [
            "STDIO",
            "SERVE",
            "LIST",
            "CALL",
            "WATCH",
            "SHELL",
            "TRUST",
            "TRUST ALLOW",
            "AUTH LOGIN",
            "AUTH KEYRING",
            "MODELS",
            "MODELS SELECT",
            "LOG",
        ] {
            assert!(page.contains(&format!(".SH \"REFMCP {command}\"")), "{command}");
        }
        for section in ["COMMANDS", "EXAMPLES", "\"EXIT STATUS\""] {
            assert!(page.contains(&format!("\n.SH {section}\n")), "{section}");
        }
        // No other page is there to be looked up.
        assert!(!page.contains("(1)") && !page.contains("EXTRA"), "{page}");
        for reason in [
            ExitReason::Usage,
            ExitReason::Failed,
            ExitReason::Authorization,
            ExitReason::Unreachable,
            ExitReason::ToolError,
            ExitReason::RulesBroken,
            ExitReason::NothingJudged,
            ExitReason::HungUp,
            ExitReason::Interrupted,
            ExitReason::Terminated,
        ] {
            let code = reason.code().to_string();
            assert!(
                EXIT_STATUS.iter().any(|(codes, _)| codes.split(", ").any(|known| known == code)),
                "{code}"
            );
        }
        assert!(!page.contains("REFMCP HELP") && !page.contains("__complete"));
        for example in [
            "refmcp serve \\-\\-auth builtin",
            "sum \\-\\-json \\-",
            "refmcp trust revoke weather",
            "auth keyring on",
        ] {
            assert!(page.contains(example), "{example} in {page}");
        }
    }
}
