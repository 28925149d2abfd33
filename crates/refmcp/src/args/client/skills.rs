//! `skills`: the commands about a server's skills.

use std::path::PathBuf;

use clap::Subcommand;

use super::ServerArgs;
use crate::args::help::{examples, usages};

// No doc comment: it would become the description of `skills`.
#[derive(Debug, Subcommand)]
pub(in crate::args) enum SkillsArgs {
    /// Show the skills, and which of them are approved.
    #[command(override_usage = usages("skills list", ""), after_help = examples("refmcp skills list"))]
    List(ServerArgs<JsonFlag>),
    /// Show the SKILL.md of a skill, or another of its files, once it is verified.
    #[command(override_usage = usages("skills show", "<SKILL> [FILE]"), after_help = examples("refmcp skills show"))]
    Show(ServerArgs<ShowArgs>),
    /// Read every file of skills, of all that are listed if none is named, and say whether they are what their entries say.
    #[command(override_usage = usages("skills verify", "[SKILL]..."), after_help = examples("refmcp skills verify"))]
    Verify(ServerArgs<VerifyArgs>),
    /// Save a skill in a folder, once its user has approved it and every file is verified.
    #[command(override_usage = usages("skills pull", "<SKILL>"), after_help = examples("refmcp skills pull"))]
    Pull(ServerArgs<PullArgs>),
}

#[derive(Debug, clap::Args)]
pub(in crate::args) struct JsonFlag {
    /// The same as --output json.
    #[arg(long, conflicts_with = "output", help_heading = "Output")]
    pub(super) json: bool,
}

#[derive(Debug, clap::Args)]
pub(in crate::args) struct ShowArgs {
    /// The skill: the URI of its SKILL.md, or its name.
    #[arg(value_name = "SKILL")]
    pub(super) skill: Option<String>,
    /// The path of another file in the skill.
    #[arg(value_name = "FILE")]
    pub(super) file: Option<String>,
    #[command(flatten)]
    pub(super) json: JsonFlag,
}

#[derive(Debug, clap::Args)]
pub(in crate::args) struct VerifyArgs {
    /// Skills: the URIs of their SKILL.md, or their names.
    #[arg(value_name = "SKILL")]
    pub(super) skills: Vec<String>,
    #[command(flatten)]
    pub(super) json: JsonFlag,
}

#[derive(Debug, clap::Args)]
pub(in crate::args) struct PullArgs {
    /// The skill: the URI of its SKILL.md, or its name.
    #[arg(value_name = "SKILL")]
    pub(super) skill: Option<String>,
    /// The folder in which the skill's own is made.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(super) into: PathBuf,
    #[command(flatten)]
    pub(super) json: JsonFlag,
}

/// What is done with skills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SkillsCommand {
    /// Show them.
    List,
    /// Show a file of one, its SKILL.md if none is named.
    Show { skill: String, file: Option<String> },
    /// Read and verify them, all if none is named.
    Verify { skills: Vec<String> },
    /// Save one in a folder.
    Pull { skill: String, into: PathBuf },
}
