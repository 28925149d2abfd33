//! Completion scripts, and what the options of a line that is still being typed say about its server.

use std::ffi::OsString;
use std::io::{self, Write};

use clap::{CommandFactory, Parser, ValueEnum};

use crate::args::{Args, OutputFormat, ServerStderr, SharedOptions};
use crate::completion;

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
        trace: None,
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

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn completing_a_line_resets_options_with_an_effect() {
        let values = [
            ("config", "-f"),
            ("headers", "A: b"),
            ("trace", "t"),
            ("sampler", "s"),
            ("roots", "r"),
            ("output", "jsonl"),
            ("log_level", "debug"),
            ("prompt", "p"),
            ("log", "trace"),
        ];
        let values = values.map(|(id, value)| (id, value.to_owned()));
        let shared = parse_shared_options(&values).unwrap();
        assert!(!shared.yes && !shared.explain && shared.trace.is_none() && shared.sampler.is_none());
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
}
