//! `models` and `metadata`, as they are typed: methods beyond the protocol.

use clap::Subcommand;

use super::client::{InfoWords, ServerCommand};
use super::examples;
use super::resolve::Line;
use super::shared::SharedOptions;
use super::{ClientCommand, ListKind, UsageError};

// What to do with models. (A doc comment would become what the command says of itself.)
#[derive(Debug, Subcommand)]
pub(super) enum ModelsWords {
    /// Show the models, and which one is active; the same as `list models`.
    #[command(override_usage = "\
refmcp models list [OPTIONS] <TARGET>
       refmcp models list [OPTIONS] -- <COMMAND>...", after_help = examples::MODELS_LIST)]
    List(InfoWords),
    /// Select a model and see whether the server takes it; a call is made with one by `call --model NAME`.
    #[command(override_usage = "\
refmcp models select [OPTIONS] <TARGET> <NAME>
       refmcp models select [OPTIONS] <NAME> -- <COMMAND>...", after_help = examples::MODELS_SELECT)]
    Select(SelectWords),
}

#[derive(Debug, clap::Args)]
pub(super) struct SelectWords {
    /// The server: a URL (http, https, ws, wss, sse+http, sse+https) or a name from a configuration file.
    #[arg(value_name = "TARGET")]
    target: Option<String>,
    /// The model's name.
    #[arg(value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    server: ServerCommand,
    #[command(flatten)]
    shared: SharedOptions,
}

impl ModelsWords {
    /// What the words mean.
    pub(super) fn resolve(self) -> Result<(ClientCommand, SharedOptions), UsageError> {
        match self {
            Self::List(words) => {
                let mut line = Line::new([words.target], words.server);
                let target = line.target()?;
                line.end()?;
                Ok((ClientCommand::List { target, what: ListKind::Models }, words.shared))
            }
            Self::Select(words) => {
                let mut line = Line::new([words.target, words.name], words.server);
                let target = line.only_target()?;
                let name = line.next("the model's name")?;
                line.end()?;
                Ok((ClientCommand::SelectModel { target, name }, words.shared))
            }
        }
    }
}

/// What the words of `metadata` mean.
pub(super) fn metadata(words: InfoWords) -> Result<(ClientCommand, SharedOptions), UsageError> {
    let mut line = Line::new([words.target], words.server);
    let target = line.target()?;
    line.end()?;
    Ok((ClientCommand::Metadata { target }, words.shared))
}
