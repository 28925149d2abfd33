//! WebSocket and standard input and output: messages one after the other.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use super::{Caller, ECHOES};
use crate::soak::http::{LIMIT, Target};
use crate::soak::message;
use crate::soak::websocket::{CLOSE, Handshake, WebSocket, frame};

/// A session over WebSocket.
pub(super) async fn websocket(target: Target, revision: &str, caller: Caller) -> Result<()> {
    let Handshake::Open(socket) = WebSocket::open(target).await? else {
        caller.refused();
        return Ok(());
    };
    let mut pipe = Pipe::WebSocket(socket);
    session(&mut pipe, revision, caller).await?;
    pipe.close().await
}

/// A session with a server of its own.
pub(super) async fn stdio(program: &Path, revision: &str, caller: Caller) -> Result<()> {
    let mut command = Command::new(program);
    command
        .arg("stdio")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let mut child = command.spawn().context("stdio")?;
    let (input, output) =
        (child.stdin.take().context("no input")?, child.stdout.take().context("no output")?);
    let server = StdioServer { child, input, output: BufReader::new(output).lines() };
    let mut pipe = Pipe::Stdio(Box::new(server));
    session(&mut pipe, revision, caller).await?;
    pipe.close().await
}

async fn session(pipe: &mut Pipe, revision: &str, mut caller: Caller) -> Result<()> {
    pipe.send(&message::initialize(revision, &json!({}))).await?;
    message::only_response(&[pipe.next().await?], 0).context("initialize")?;
    pipe.send(message::INITIALIZED).await?;
    // All calls are in flight together: answers may come in any order.
    let mut waiting: Vec<(u64, String)> = (1..=ECHOES).map(|id| (id, caller.nonce())).collect();
    for (id, nonce) in &waiting {
        pipe.send(&Caller::echo(*id, nonce)).await?;
    }
    while !waiting.is_empty() {
        let answer = pipe.next().await?;
        let at = waiting.iter().position(|(id, _)| answer["id"] == *id);
        let (id, nonce) = waiting.remove(at.with_context(|| format!("not asked for: {answer}"))?);
        caller.answered(&[answer], id, &nonce)?;
    }
    pipe.send(&message::long_task(100, 3, 20)).await?;
    let mut messages = vec![pipe.next().await?];
    while messages.last().is_some_and(|message| message.get("method").is_some()) {
        messages.push(pipe.next().await?);
    }
    caller.answered(&messages, 100, "done: 3 of 3 steps")
}

enum Pipe {
    WebSocket(WebSocket),
    Stdio(Box<StdioServer>),
}

struct StdioServer {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Pipe {
    async fn send(&mut self, message: &str) -> Result<()> {
        match self {
            Self::WebSocket(socket) => socket.send(message).await,
            Self::Stdio(server) => {
                server.input.write_all(format!("{message}\n").as_bytes()).await?;
                Ok(server.input.flush().await?)
            }
        }
    }

    async fn next(&mut self) -> Result<Value> {
        match self {
            Self::WebSocket(socket) => socket.next().await,
            Self::Stdio(server) => {
                let line = timeout(LIMIT, server.output.next_line()).await.context("no line came")??;
                Ok(serde_json::from_str(&line.context("the server ended")?)?)
            }
        }
    }

    async fn close(self) -> Result<()> {
        match self {
            Self::WebSocket(mut socket) => Ok(socket.stream.write_all(&frame(CLOSE, &[])).await?),
            Self::Stdio(server) => {
                let StdioServer { mut child, input, .. } = *server;
                drop(input);
                let status = timeout(LIMIT, child.wait()).await.context("the server does not end")??;
                anyhow::ensure!(status.success(), "the server ended with {status}");
                Ok(())
            }
        }
    }
}
