//! The foreign servers: their source, their endpoints, and which revisions each endpoint speaks.

use std::path::PathBuf;

use super::super::Paths;
use super::super::client::{CLIENTS, Client, Language};
use super::step::Feature;
use super::{reference_servers, scenario};
use crate::REVISIONS;
use crate::install::in_venv;
use crate::server::Transport::{self, HttpSse, Stdio, StreamableHttp, WebSocket};

/// A server that our command line is run against.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) name: &'static str,
    source: Source,
    pub(super) endpoints: &'static [Endpoint],
}

/// Where a server comes from.
#[derive(Debug)]
enum Source {
    /// A script of a folder with packages of its own.
    Node { folder: Client, script: &'static str },
    /// A script that takes the packages of the client with this name.
    Python { client: &'static str, script: &'static str },
    /// A crate with a lock file of its own.
    Rust { folder: Client, binary: &'static str },
    /// The release build.
    Ours,
}

/// A server on one transport.
#[derive(Debug)]
pub(super) struct Endpoint {
    pub(super) transport: Transport,
    /// What is given to the server when it is started. `PORT` stands for the port.
    pub(super) words: &'static [&'static str],
    /// Where it is reached then; nothing for a server that is started by refmcp.
    pub(super) url: &'static str,
    /// What it speaks.
    pub(super) speaks: &'static [&'static str],
    /// The revisions of the whole scenario; in others it is only seen that they are agreed on. A server that is started
    /// for every command takes too long for more than a few of them.
    pub(super) scenario_revisions: &'static [&'static str],
    pub(super) scenario: fn() -> Vec<Feature>,
}

const ALL: &[&str] = REVISIONS.as_slice();
const SESSIONS: &[&str] = REVISIONS.split_at(4).0;
const NEWEST: &[&str] = REVISIONS.split_at(3).1;
const NEWEST_ALONE: &[&str] = REVISIONS.split_at(4).1;
const NEWEST_SESSION: &[&str] = SESSIONS.split_at(3).1;

type Scenario = fn() -> Vec<Feature>;

const fn endpoint(
    transport: Transport,
    words: &'static [&'static str],
    url: &'static str,
    speaks: &'static [&'static str],
    scenario: Scenario,
) -> Endpoint {
    Endpoint { transport, words, url, speaks, scenario_revisions: speaks, scenario }
}

impl Endpoint {
    const fn only_in(self, scenario_revisions: &'static [&'static str]) -> Self {
        Self { scenario_revisions, ..self }
    }
}

const MCP: &str = "http://127.0.0.1:PORT/mcp";
const SSE: &str = "sse+http://127.0.0.1:PORT/sse";

pub(super) const SERVERS: [Server; 6] = [
    Server {
        name: "everything",
        source: Source::Node {
            folder: Client { name: "servers/everything", language: Language::TypeScript },
            script: "node_modules/@modelcontextprotocol/server-everything/dist/index.js",
        },
        endpoints: &[
            endpoint(Stdio, &["stdio"], "", SESSIONS, reference_servers::everything).only_in(NEWEST_SESSION),
            endpoint(
                StreamableHttp,
                &["streamableHttp"],
                MCP,
                SESSIONS,
                reference_servers::everything_over_http,
            ),
            endpoint(HttpSse, &["sse"], SSE, SESSIONS, reference_servers::everything),
        ],
    },
    Server {
        name: "typescript-v2",
        source: Source::Node {
            folder: Client { name: "servers/typescript-v2", language: Language::TypeScript },
            script: "server.mjs",
        },
        endpoints: &[
            endpoint(Stdio, &["stdio"], "", ALL, scenario::scenario).only_in(NEWEST),
            endpoint(StreamableHttp, &["http", "PORT"], MCP, ALL, scenario::scenario),
            endpoint(HttpSse, &["sse", "PORT"], SSE, SESSIONS, scenario::scenario),
        ],
    },
    Server {
        name: "python-v1",
        source: Source::Python { client: "python-v1", script: "servers/python-v1/server.py" },
        endpoints: &[
            endpoint(Stdio, &["stdio"], "", SESSIONS, scenario::scenario).only_in(NEWEST_SESSION),
            endpoint(StreamableHttp, &["http", "PORT"], MCP, SESSIONS, scenario::scenario),
            endpoint(HttpSse, &["sse", "PORT"], SSE, SESSIONS, scenario::scenario),
            endpoint(
                WebSocket,
                &["websocket", "PORT"],
                "ws://127.0.0.1:PORT/ws",
                SESSIONS,
                scenario::scenario,
            ),
        ],
    },
    Server {
        name: "python-v2",
        source: Source::Python { client: "python-v2", script: "servers/python-v2/server.py" },
        endpoints: &[
            endpoint(Stdio, &["stdio"], "", ALL, scenario::scenario).only_in(NEWEST_ALONE),
            endpoint(StreamableHttp, &["http", "PORT"], MCP, ALL, scenario::scenario),
            endpoint(HttpSse, &["sse", "PORT"], SSE, ALL, scenario::scenario),
        ],
    },
    Server {
        name: "rmcp",
        source: Source::Rust {
            folder: Client { name: "servers/rmcp", language: Language::Rust },
            binary: "refmcp-interop-server-rmcp",
        },
        endpoints: &[
            endpoint(Stdio, &["stdio"], "", ALL, scenario::scenario),
            endpoint(StreamableHttp, &["http", "PORT"], MCP, ALL, scenario::scenario),
        ],
    },
    Server {
        name: "refmcp",
        source: Source::Ours,
        endpoints: &[
            endpoint(Stdio, &["stdio"], "", ALL, reference_servers::alone),
            endpoint(StreamableHttp, &["serve", "--port", "PORT"], MCP, ALL, reference_servers::shared),
            endpoint(HttpSse, &["serve", "--port", "PORT"], SSE, ALL, reference_servers::shared),
            endpoint(
                WebSocket,
                &["serve", "--port", "PORT"],
                "ws://127.0.0.1:PORT/mcp/ws",
                ALL,
                reference_servers::shared,
            ),
        ],
    },
];

impl Server {
    /// What is to be set up before it can be started.
    pub(super) fn needs(&self) -> Option<&Client> {
        match &self.source {
            Source::Node { folder, .. } | Source::Rust { folder, .. } => Some(folder),
            Source::Python { client, .. } => CLIENTS.iter().find(|known| known.name == *client),
            Source::Ours => None,
        }
    }

    /// The command that starts it, without the arguments of the endpoint.
    pub(super) fn words(&self, paths: &Paths) -> Vec<PathBuf> {
        match &self.source {
            Source::Node { folder, script } => {
                vec!["node".into(), folder.folder(&paths.sources).join(script)]
            }
            Source::Python { client, script } => {
                vec![in_venv(&paths.out.join(client), "python"), paths.sources.join(script)]
            }
            Source::Rust { folder, binary } => {
                let binary = format!("{binary}{}", std::env::consts::EXE_SUFFIX);
                vec![folder.built(&paths.out).join("debug").join(binary)]
            }
            Source::Ours => vec![paths.server.clone()],
        }
    }

    /// True if it must end with code 0 on SIGTERM.
    pub(super) fn is_ours(&self) -> bool {
        matches!(self.source, Source::Ours)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_endpoint_is_run_in_what_it_speaks() {
        for way in SERVERS.iter().flat_map(|server| server.endpoints) {
            assert!(!way.scenario_revisions.is_empty());
            assert!(way.scenario_revisions.iter().all(|revision| way.speaks.contains(revision)), "{way:?}");
            assert_eq!(way.url.is_empty(), way.transport == Stdio);
        }
    }

    #[test]
    fn every_scenario_shows_the_same_features() {
        // Tasks are a row of their own where a server has them.
        let names = |scenario: Scenario| {
            let features = scenario();
            let names = features.iter().map(|feature| feature.name).filter(|name| !name.starts_with("tasks"));
            names.collect::<Vec<_>>()
        };
        for way in SERVERS.iter().flat_map(|server| server.endpoints) {
            assert_eq!(names(way.scenario), names(scenario::scenario));
        }
    }
}
