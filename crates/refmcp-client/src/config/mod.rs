//! Servers that configuration files name, as the files of several hosts do.
//!
//! | file | shape |
//! |---|---|
//! | `mcp.json`, `.mcp.json`, `.claude.json`, `.cursor/mcp.json`, `claude_desktop_config.json` | `{"mcpServers": {name: entry}}` |
//! | `.vscode/mcp.json` and the user's `mcp.json` of VS Code | `{"servers": {name: entry}, "inputs": [input]}` |
//!
//! [`parse`] reads the text of either and has no effects; [`read`] reads a file, and [`usual_files`] says where they
//! usually are. An entry that is wrong becomes a [`Problem`] and leaves the others alone. Entries are kept as they are
//! written until [`Servers::resolve`] fills in their variables.

use std::fmt;
use std::path::PathBuf;

mod connector;
mod entry;
mod env_file;
mod hosts;
mod input;
mod jsonc;
mod members;
mod places;
mod problem;
mod resolve;
mod secret;
mod text;

pub use env_file::parse_env_file;
pub use hosts::{ConfigHost, ConfigScope, Platform, usual_files};
pub use input::{Input, InputKind};
pub use places::{discover, read, read_all};
pub use problem::{Problem, Severity};
pub use resolve::ResolveError;
pub use secret::Secret;
pub use text::parse;

/// What one or several configuration files name.
#[derive(Debug, Clone, Default)]
pub struct Servers {
    /// The servers, in the order of the files.
    pub servers: Vec<ServerEntry>,
    /// What has to be asked for before some of them can be started.
    pub inputs: Vec<Input>,
    /// What is wrong with the files.
    pub problems: Vec<Problem>,
}

impl Servers {
    /// The server of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&ServerEntry> {
        self.servers.iter().find(|entry| entry.name == name)
    }

    /// Adds what another file names. Where both name the same server, the one that was there first stays.
    pub fn add(&mut self, other: Self) {
        self.problems.extend(other.problems);
        self.inputs.extend(other.inputs);
        for entry in other.servers {
            match self.get(&entry.name) {
                Some(first) => {
                    let why =
                        format!("is not used: {} has a server of the same name", first.source.display());
                    self.problems.push(Problem::hint(&entry.source, why).of_server(&entry.name));
                }
                None => self.servers.push(entry),
            }
        }
    }
}

/// One server of a configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerEntry {
    /// Its name.
    pub name: String,
    /// The file that names it.
    pub source: PathBuf,
    /// How to get to it.
    pub launch: Launch,
    /// Whether the file says that it is not to be used.
    pub disabled: bool,
}

/// How to get to a server.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Launch {
    /// Start a program.
    Command {
        /// The program: a path, or a name to look for in `PATH`.
        program: String,
        /// Its arguments.
        args: Vec<String>,
        /// The environment variables that are set for it.
        env: Vec<(String, Secret)>,
        /// The directory to run it in.
        cwd: Option<PathBuf>,
        /// A file with more environment variables, read by [`parse_env_file`]; those in `env` come first.
        env_file: Option<PathBuf>,
    },
    /// Streamable HTTP.
    Http {
        /// Where.
        url: String,
        /// Headers of every request.
        headers: Vec<(String, Secret)>,
    },
    /// The older HTTP+SSE.
    Sse {
        /// Where.
        url: String,
        /// Headers of every request.
        headers: Vec<(String, Secret)>,
    },
    /// WebSocket.
    WebSocket {
        /// Where.
        url: String,
        /// Headers of the request that opens it.
        headers: Vec<(String, Secret)>,
    },
}

impl fmt::Debug for Launch {
    /// Arguments and what follows `?` in an address may hold secrets as well.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, url, headers) = match self {
            Self::Command { program, args, env, cwd, env_file } => {
                return f
                    .debug_struct("Command")
                    .field("program", program)
                    .field("args", &args.len())
                    .field("env", env)
                    .field("cwd", cwd)
                    .field("env_file", env_file)
                    .finish();
            }
            Self::Http { url, headers } => ("Http", url, headers),
            Self::Sse { url, headers } => ("Sse", url, headers),
            Self::WebSocket { url, headers } => ("WebSocket", url, headers),
        };
        f.debug_struct(name).field("url", &without_secrets(url)).field("headers", headers).finish()
    }
}

/// An address without a query and without a password.
fn without_secrets(url: &str) -> String {
    let shown = url.split(['?', '#']).next().unwrap_or_default();
    let Some((scheme, rest)) = shown.split_once("://") else { return shown.to_owned() };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    format!("{scheme}://{host}{path}")
}

#[cfg(feature = "child")]
impl ServerEntry {
    /// The program to start, where it is one. Reads the file with its environment variables.
    ///
    /// # Errors
    /// That file cannot be read.
    pub fn child(&self) -> Result<Option<crate::child::ChildProcess>, Problem> {
        let Launch::Command { program, args, env, cwd, env_file } = &self.launch else { return Ok(None) };
        let mut child = crate::child::ChildProcess::new(program).args(args);
        if let Some(path) = env_file {
            let text = places::text_of(path).map_err(|problem| {
                let why = format!("{} {}", path.display(), problem.message);
                Problem::error(&self.source, why).of_server(&self.name).of_member("envFile")
            })?;
            child = child.envs(parse_env_file(&text).iter().map(|(name, value)| (name, value.reveal())));
        }
        child = child.envs(env.iter().map(|(name, value)| (name, value.reveal())));
        Ok(Some(match cwd {
            Some(cwd) => child.current_dir(cwd),
            None => child,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_secrets() {
        for (url, shown) in [
            ("https://user:pass@host:1/path?key=hush#x", "https://host:1/path"),
            ("https://host", "https://host"),
            ("https://host/a@b", "https://host/a@b"),
            ("${input:url}", "${input:url}"),
        ] {
            assert_eq!(without_secrets(url), shown);
        }
    }
}
