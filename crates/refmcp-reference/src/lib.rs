//! What the reference server offers, as ordinary code on [`refmcp_server`]: every feature of the protocol, to test
//! clients against, and the fixtures of the official conformance suite.
//!
//! ```
//! # fn main() -> Result<(), refmcp_reference::ReferenceError> {
//! use refmcp_reference::{Options, Profile};
//!
//! let server = refmcp_reference::server(Options { profile: Profile::All, ..Options::default() })?;
//! # let _ = server;
//! // server.stdio().await?;
//! # Ok(()) }
//! ```
//!
//! | module | what it is |
//! |---|---|
//! | `profile` | which half of the contents is offered |
//! | `tools` | the reference tools, one file for each family |
//! | `resources`, `prompts`, `skills` | the built-in ones, and those of a directory |
//! | `apps` | apps that test hosts, and their tools |
//! | `verdict` | the verdict of an audit on the client, as a resource and in `about_me` |
//! | `models`, `metadata` | methods beyond the protocol |
//! | `tour` | leads clients through everything, where [`Options::tour`] says so |
//! | `conformance` | the fixtures of the conformance suite |
//! | `added_items`, `cancellation_log`, `directory_watcher` | items added at run time, cancelled calls, directories that change |
//! | `media` | pictures and sounds |
//!
//! # Files as resources
//!
//! With [`Options::resources_dir`] every file of a directory is a resource at `file:///dir/` and its path. Files and
//! directories whose names begin with a dot are left out, and so are symbolic links in lists; one that stays inside
//! the directory can be read through, one that leads out of it cannot. Clients are told when files come, go or change.
//!
//! # Skills of a directory
//!
//! With [`Options::skills_dir`] every directory below it that has a `SKILL.md` is a skill at `skill://` and its path, with all
//! files in it. Hidden files and symbolic links are left out. The log says what is wrong with a skill; it then stays as it was
//! before. Clients are told when skills or their files change.
//!
//! # Prompts from files
//!
//! With [`Options::prompts_dir`] every `*.md` and `*.txt` of a directory is a prompt named after the file. Its text is
//! one message of the user, in which `{{name}}` stands for an argument; `{{role "user"}}` and `{{role "assistant"}}`
//! begin further messages. YAML front matter may describe the prompt and its arguments:
//!
//! ```text
//! ---
//! title: Release notes
//! description: Asks for the notes of a release
//! arguments:
//!   - name: version
//!     description: The version they are for
//!   - name: tone
//!     description: How they should sound
//!     default: friendly
//!     values: [friendly, formal]
//! ---
//! Write the release notes of version {{version}}. Sound {{tone}}.
//! ```
//!
//! An argument must be given unless it has a default or says `required: false`. A file replaces a built-in prompt of
//! the same name. The log says which line of a file is wrong, and what to write instead; the prompt then stays as it
//! was before. Clients are told when prompts come, go or change. `docs/reference-server.md` has all of the format.

mod added_items;
mod apps;
mod cancellation_log;
mod conformance;
mod directory_watcher;
mod media;
mod metadata;
mod models;
mod profile;
mod prompts;
mod resources;
mod skills;
mod tools;
mod tour;
mod verdict;

use std::path::PathBuf;

use refmcp_server::model::Implementation;
use refmcp_server::{BuildError, Policy, Server, ServerBuilder, Timeouts};

pub use profile::Profile;
pub use prompts::parse_prompt_file;
pub use tour::{Occasion, Step, TourSteps, UnknownStep};
pub use verdict::VerdictSource;

/// The scope that a client's token has to have for tools that change something others can see: the lists, and the
/// resources that can be touched. Everything else takes any token; where no tokens are asked for, all of it takes none.
pub const WRITE_SCOPE: &str = "mcp:write";

/// Every scope that the server knows.
pub const SCOPES: [&str; 1] = [WRITE_SCOPE];

/// What the reference server is like.
#[derive(Debug, Clone)]
pub struct Options {
    /// Which contents are offered.
    pub profile: Profile,
    /// What the server calls itself.
    pub name: String,
    /// Its version.
    pub version: String,
    /// A directory whose files are resources.
    pub resources_dir: Option<PathBuf>,
    /// A directory whose files are prompts.
    pub prompts_dir: Option<PathBuf>,
    /// A directory with skills in it, or one that is a skill.
    pub skills_dir: Option<PathBuf>,
    /// How many things a page of a list has.
    pub page_size: usize,
    /// How strict the server is with clients that break rules one can live with.
    pub policy: Policy,
    /// How long things may take.
    pub timeouts: Timeouts,
    /// Where the server can be reached, for `metadata/get`.
    pub endpoints: Vec<String>,
    /// Whether clients need a token, for `metadata/get`.
    pub auth_required: bool,
    /// The steps of the tour that clients are led through, if they are.
    pub tour: Option<TourSteps>,
    /// What knows the verdict on a client, where clients are judged.
    pub verdicts: Option<VerdictSource>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            profile: Profile::default(),
            name: "RefMCP-TestServer".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            resources_dir: None,
            prompts_dir: None,
            skills_dir: None,
            page_size: 200,
            policy: Policy::default(),
            timeouts: Timeouts::default(),
            endpoints: Vec::new(),
            auth_required: false,
            tour: None,
            verdicts: None,
        }
    }
}

/// Why there is no reference server.
#[derive(Debug, thiserror::Error)]
pub enum ReferenceError {
    /// A directory cannot be opened.
    #[error("the directory of {what}, {}, cannot be opened", path.display())]
    Directory {
        /// What it would be for.
        what: &'static str,
        /// Which one.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A directory cannot be watched.
    #[error("the directory of {what}, {}, cannot be watched", path.display())]
    Watch {
        /// What it would be for.
        what: &'static str,
        /// Which one.
        path: PathBuf,
        /// Why not.
        source: notify::Error,
    },
    /// The contents do not make a server.
    #[error(transparent)]
    Build(#[from] BuildError),
}

/// The reference server. Needs no runtime; directories are watched by threads that end with the server.
pub fn server(options: Options) -> Result<Server, ReferenceError> {
    server_with(options, |builder| builder)
}

/// The same, with whatever else a server can be told.
pub fn server_with(
    options: Options,
    more: impl FnOnce(ServerBuilder) -> ServerBuilder,
) -> Result<Server, ReferenceError> {
    let mut builder = Server::builder(options.name, options.version)
        .info(describe)
        .instructions(INSTRUCTIONS)
        .page_size(options.page_size)
        .policy(options.policy)
        .timeouts(options.timeouts);
    if let Some(steps) = options.tour {
        let instructions = format!("{INSTRUCTIONS} {}", tour::INSTRUCTIONS);
        builder = tour::add(builder, steps).instructions(instructions);
    }
    if options.profile.has_reference() {
        builder = tools::add(builder, options.verdicts.as_ref());
        builder = resources::add(builder)?.resource(verdict::resource(options.verdicts));
        builder = prompts::add(builder);
        builder = apps::add(builder);
        builder = models::add(builder);
        builder = metadata::add(builder, options.endpoints, options.auth_required);
    }
    if options.profile.has_fixtures() {
        builder = conformance::add(builder)?;
    }
    builder = skills::add(builder);
    let files = options.resources_dir.map(resources::directory::UnservedResources::open).transpose()?;
    let templates = options.prompts_dir.map(prompts::directory::UnservedPrompts::open).transpose()?;
    let skills = options.skills_dir.map(skills::directory::UnservedSkills::open).transpose()?;
    if let Some(files) = &files {
        builder = builder.template(files.template()?);
    }
    let server = more(builder).build()?;
    if let Some(files) = files {
        files.serve(&server)?;
    }
    if let Some(templates) = templates {
        templates.serve(&server)?;
    }
    if let Some(skills) = skills {
        skills.serve(&server)?;
    }
    Ok(server)
}

const INSTRUCTIONS: &str = "A server to test MCP clients against. Every tool is harmless, works offline and always \
                            gives the same results; about_me tells what the server knows of the client.";

fn describe(info: Implementation) -> Implementation {
    info.title("RefMCP reference server")
        .description("Every feature of the Model Context Protocol, to test clients against")
}

impl From<refmcp_server::UriTemplateError> for ReferenceError {
    fn from(error: refmcp_server::UriTemplateError) -> Self {
        Self::Build(BuildError(vec![error.to_string()]))
    }
}
