//! Good clients, of every transport: each opens a connection, calls tools, checks every answer and leaves politely.

mod http_sse;
mod pipe;
mod streamable_http;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::http::Target;
use super::ledger::Ledger;
use super::message;
use super::random::Random;

/// Calls of `echo` that a client makes before it leaves.
const ECHOES: u64 = 8;

/// What every good client has.
#[derive(Clone)]
pub(super) struct GoodClients {
    pub(super) target: Target,
    /// For clients that start a server of their own, over standard input and output.
    pub(super) program: Arc<PathBuf>,
    pub(super) ledger: Ledger,
    /// Set when clients are to leave once their calls are answered.
    pub(super) stop: Arc<AtomicBool>,
}

/// One kind of client.
struct Client {
    name: &'static str,
    transport: Transport,
    revision: &'static str,
}

enum Transport {
    StreamableHttp,
    Stateless,
    HttpSse,
    WebSocket,
    Stdio,
}

const CLIENTS: [Client; 9] = [
    Client { name: "HTTP, 2025-03-26", transport: Transport::StreamableHttp, revision: "2025-03-26" },
    Client { name: "HTTP, 2025-06-18", transport: Transport::StreamableHttp, revision: "2025-06-18" },
    Client { name: "HTTP, 2025-11-25", transport: Transport::StreamableHttp, revision: "2025-11-25" },
    Client { name: "HTTP, 2026-07-28", transport: Transport::Stateless, revision: "2026-07-28" },
    Client { name: "HTTP+SSE, 2024-11-05", transport: Transport::HttpSse, revision: "2024-11-05" },
    Client { name: "WebSocket, 2025-11-25", transport: Transport::WebSocket, revision: "2025-11-25" },
    Client { name: "WebSocket, 2025-06-18", transport: Transport::WebSocket, revision: "2025-06-18" },
    Client { name: "stdio, 2024-11-05", transport: Transport::Stdio, revision: "2024-11-05" },
    Client { name: "stdio, 2025-11-25", transport: Transport::Stdio, revision: "2025-11-25" },
];

impl GoodClients {
    /// Starts so many clients of each kind; they end after `stop`.
    pub(super) fn start(&self, of_each: usize, random: &mut Random) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        for client in &CLIENTS {
            // A client that starts a process costs more than the others.
            let number = if matches!(client.transport, Transport::Stdio) { 1 } else { of_each };
            for _ in 0..number {
                tasks.spawn(self.clone().run(client, random.fork()));
            }
        }
        tasks
    }

    async fn run(self, client: &'static Client, mut random: Random) {
        while !self.stop.load(Ordering::Relaxed) {
            let caller = Caller { name: client.name, ledger: self.ledger.clone(), random: random.fork() };
            let left = match client.transport {
                Transport::StreamableHttp => {
                    streamable_http::session(self.target, client.revision, caller).await
                }
                Transport::Stateless => streamable_http::stateless(self.target, caller).await,
                Transport::HttpSse => http_sse::session(self.target, client.revision, caller).await,
                Transport::WebSocket => pipe::websocket(self.target, client.revision, caller).await,
                Transport::Stdio => pipe::stdio(&self.program, client.revision, caller).await,
            };
            if let Err(error) = left {
                self.ledger.failed(client.name, &error);
            }
            tokio::time::sleep(random.millis(50..500)).await;
        }
    }
}

/// One client on its way: it makes up what is sent, and records what comes back.
struct Caller {
    name: &'static str,
    ledger: Ledger,
    random: Random,
}

impl Caller {
    /// A text that no other call has.
    fn nonce(&mut self) -> String {
        format!("{} {:016x}", self.name, self.random.next())
    }

    fn echo(id: u64, nonce: &str) -> String {
        message::call(id, "echo", &json!({ "message": nonce }))
    }

    /// Records the answer to a call; it must be the only one, and this text.
    fn answered(&self, messages: &[Value], id: u64, wanted: &str) -> Result<()> {
        let result = message::only_response(messages, id)?;
        ensure!(message::text(result) == Some(wanted), "not the answer {wanted:?}: {result}");
        self.ledger.answered(self.name);
        Ok(())
    }

    fn refused(&self) {
        self.ledger.refused(self.name);
    }
}
