//! What a line that is not finished yet says already, for the completion of its next word.

use std::ffi::OsString;

use clap::{CommandFactory, Parser, ValueEnum};

use super::{Args, OutputFormat, ServerStderr, SharedOptions};

// A line, as the script of a shell hands it over.
#[derive(Debug, clap::Args)]
pub(super) struct LineWords {
    /// Whose script asks.
    pub(super) shell: CompletionShell,
    /// What the shell knows of the line.
    #[arg(last = true)]
    pub(super) words: Vec<OsString>,
}

/// A shell whose script asks how a line may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CompletionShell {
    /// GNU Bash.
    Bash,
    /// The Z shell.
    Zsh,
    /// fish.
    Fish,
}

pub(super) const EXAMPLES: &str = "\
Examples:
  source <(refmcp completions bash)
      complete in this bash; in ~/.bashrc, in every one
  refmcp completions zsh > \"${fpath[1]}/_refmcp\"
      complete in every new zsh
  refmcp completions fish > ~/.config/fish/completions/refmcp.fish
      complete in every fish";

/// Everything that can be typed.
pub(crate) fn definition() -> clap::Command {
    let mut command = Args::command();
    command.build();
    command
}

/// The options that all commands which drive a server have, and nothing else.
#[derive(Debug, Parser)]
struct SharedWords {
    #[command(flatten)]
    shared: SharedOptions,
}

/// What the options of a line say about the server: `values` are those that have a value, by their ids. Nothing of it
/// asks, agrees, writes or prints: what is looked up for a line that was not entered must not do what the line would.
pub(crate) fn typed_shared(values: &[(&str, String)]) -> Option<SharedOptions> {
    let definition = SharedWords::command();
    let words = values.iter().filter_map(|(id, value)| {
        let option = definition.get_arguments().find(|option| option.get_id() == *id)?;
        Some(format!("--{}={value}", option.get_long()?))
    });
    let shared = SharedWords::try_parse_from(std::iter::once("refmcp".to_owned()).chain(words)).ok()?.shared;
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
    fn a_line_that_was_not_entered_agrees_to_nothing() {
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
        let shared = typed_shared(&values).unwrap();
        assert!(!shared.yes && !shared.explain && shared.trace.is_none() && shared.sampler.is_none());
        assert!(shared.output == OutputFormat::Text && shared.roots.is_empty() && shared.log_level.is_none());
        assert_eq!((shared.config, shared.headers.len()), (Some(PathBuf::from("-f")), 1));
        assert!(typed_shared(&[("timeout", "soon".to_owned())]).is_none());
    }
}
