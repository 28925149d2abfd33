//! The servers: where each comes from, the ways to reach it, and which revisions it speaks there.

use std::path::PathBuf;

use super::super::Places;
use super::super::client::{CLIENTS, Client, Language};
use super::step::Feature;
use super::{others, tour};
use crate::REVISIONS;
use crate::install::in_venv;
use crate::server::Transport::{self, HttpSse, Stdio, StreamableHttp, WebSocket};

/// A server that refmcp visits.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) name: &'static str,
    from: From,
    pub(super) ways: &'static [Way],
}

/// Where a server comes from.
#[derive(Debug)]
enum From {
    /// A script of a folder with packages of its own.
    Node { folder: Client, script: &'static str },
    /// A script that takes the packages of the client with this name.
    Python { client: &'static str, script: &'static str },
    /// A crate with a lock file of its own.
    Rust { folder: Client, binary: &'static str },
    /// The release build.
    Ours,
}

/// A way to reach a server.
#[derive(Debug)]
pub(super) struct Way {
    pub(super) transport: Transport,
    /// What is given to the server when it is started. `PORT` is where it listens.
    pub(super) words: &'static [&'static str],
    /// Where it is reached then; nothing for a server that is started by refmcp.
    pub(super) url: &'static str,
    /// What it speaks.
    pub(super) speaks: &'static [&'static str],
    /// The revisions of the whole tour; in others it is only seen that they are agreed on. A server that is started
    /// for every command takes too long for more than a few of them.
    pub(super) toured: &'static [&'static str],
    pub(super) tour: fn() -> Vec<Feature>,
}

const ALL: &[&str] = REVISIONS.as_slice();
const SESSIONS: &[&str] = REVISIONS.split_at(4).0;
const NEWEST: &[&str] = REVISIONS.split_at(3).1;
const NEWEST_ALONE: &[&str] = REVISIONS.split_at(4).1;
const NEWEST_SESSION: &[&str] = SESSIONS.split_at(3).1;

type Tour = fn() -> Vec<Feature>;

const fn way(
    transport: Transport,
    words: &'static [&'static str],
    url: &'static str,
    speaks: &'static [&'static str],
    tour: Tour,
) -> Way {
    Way { transport, words, url, speaks, toured: speaks, tour }
}

impl Way {
    const fn touring(self, toured: &'static [&'static str]) -> Self {
        Self { toured, ..self }
    }
}

const MCP: &str = "http://127.0.0.1:PORT/mcp";
const SSE: &str = "sse+http://127.0.0.1:PORT/sse";

pub(super) const SERVERS: [Server; 6] = [
    Server {
        name: "everything",
        from: From::Node {
            folder: Client { name: "servers/everything", language: Language::TypeScript },
            script: "node_modules/@modelcontextprotocol/server-everything/dist/index.js",
        },
        ways: &[
            way(Stdio, &["stdio"], "", SESSIONS, others::everything).touring(NEWEST_SESSION),
            way(StreamableHttp, &["streamableHttp"], MCP, SESSIONS, others::everything_over_http),
            way(HttpSse, &["sse"], SSE, SESSIONS, others::everything),
        ],
    },
    Server {
        name: "typescript-v2",
        from: From::Node {
            folder: Client { name: "servers/typescript-v2", language: Language::TypeScript },
            script: "server.mjs",
        },
        ways: &[
            way(Stdio, &["stdio"], "", ALL, tour::tour).touring(NEWEST),
            way(StreamableHttp, &["http", "PORT"], MCP, ALL, tour::tour),
            way(HttpSse, &["sse", "PORT"], SSE, SESSIONS, tour::tour),
        ],
    },
    Server {
        name: "python-v1",
        from: From::Python { client: "python-v1", script: "servers/python-v1/server.py" },
        ways: &[
            way(Stdio, &["stdio"], "", SESSIONS, tour::tour).touring(NEWEST_SESSION),
            way(StreamableHttp, &["http", "PORT"], MCP, SESSIONS, tour::tour),
            way(HttpSse, &["sse", "PORT"], SSE, SESSIONS, tour::tour),
            way(WebSocket, &["websocket", "PORT"], "ws://127.0.0.1:PORT/ws", SESSIONS, tour::tour),
        ],
    },
    Server {
        name: "python-v2",
        from: From::Python { client: "python-v2", script: "servers/python-v2/server.py" },
        ways: &[
            way(Stdio, &["stdio"], "", ALL, tour::tour).touring(NEWEST_ALONE),
            way(StreamableHttp, &["http", "PORT"], MCP, ALL, tour::tour),
            way(HttpSse, &["sse", "PORT"], SSE, ALL, tour::tour),
        ],
    },
    Server {
        name: "rmcp",
        from: From::Rust {
            folder: Client { name: "servers/rmcp", language: Language::Rust },
            binary: "refmcp-interop-server-rmcp",
        },
        ways: &[
            way(Stdio, &["stdio"], "", ALL, tour::tour),
            way(StreamableHttp, &["http", "PORT"], MCP, ALL, tour::tour),
        ],
    },
    Server {
        name: "refmcp",
        from: From::Ours,
        ways: &[
            way(Stdio, &["stdio"], "", ALL, others::alone),
            way(StreamableHttp, &["serve", "--port", "PORT"], MCP, ALL, others::shared),
            way(HttpSse, &["serve", "--port", "PORT"], SSE, ALL, others::shared),
            way(WebSocket, &["serve", "--port", "PORT"], "ws://127.0.0.1:PORT/mcp/ws", ALL, others::shared),
        ],
    },
];

impl Server {
    /// What is to be set up before it can be started.
    pub(super) fn needs(&self) -> Option<&Client> {
        match &self.from {
            From::Node { folder, .. } | From::Rust { folder, .. } => Some(folder),
            From::Python { client, .. } => CLIENTS.iter().find(|known| known.name == *client),
            From::Ours => None,
        }
    }

    /// The words that start it, but for those of the way.
    pub(super) fn words(&self, places: &Places) -> Vec<PathBuf> {
        match &self.from {
            From::Node { folder, script } => vec!["node".into(), folder.folder(&places.sources).join(script)],
            From::Python { client, script } => {
                vec![in_venv(&places.out.join(client), "python"), places.sources.join(script)]
            }
            From::Rust { folder, binary } => {
                let binary = format!("{binary}{}", std::env::consts::EXE_SUFFIX);
                vec![folder.built(&places.out).join("debug").join(binary)]
            }
            From::Ours => vec![places.server.clone()],
        }
    }

    /// Whether it must end with code 0 when it is told to.
    pub(super) fn is_ours(&self) -> bool {
        matches!(self.from, From::Ours)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_is_toured_in_what_it_speaks() {
        for way in SERVERS.iter().flat_map(|server| server.ways) {
            assert!(!way.toured.is_empty());
            assert!(way.toured.iter().all(|revision| way.speaks.contains(revision)), "{way:?}");
            assert_eq!(way.url.is_empty(), way.transport == Stdio);
        }
    }

    #[test]
    fn every_tour_shows_the_same_features() {
        let names = |tour: Tour| tour().iter().map(|feature| feature.name).collect::<Vec<_>>();
        for way in SERVERS.iter().flat_map(|server| server.ways) {
            assert_eq!(names(way.tour), names(tour::tour));
        }
    }
}
