//! Fault injection on a pipe in memory: what a server sends to a client under test goes wrong as a plan says. Over HTTP and
//! WebSocket, `refmcp relay --faults` does the same to any server.
//!
//! ```
//! use refmcp_testkit::faults::faulty_pipe;
//! use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
//! let (server, mut answers) = tokio::io::duplex(1024);
//! let mut client = faulty_pipe(server, "ping 1: answer twice".parse()?);
//! client.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n").await?;
//! answers.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n").await?;
//! let mut lines = BufReader::new(client).lines();
//! assert_eq!(lines.next_line().await?, lines.next_line().await?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::io;
use std::time::Duration;

pub use refmcp_faults::{FaultPlan, Faults, Output};
use tokio::io::{
    AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, DuplexStream, duplex, split,
};
use tokio::task::JoinSet;
use tokio::time::sleep;

/// Bytes that the pipe holds for a client that does not read.
const PIPE: usize = 64 << 10;

/// The client's end of a pipe to this server, on which what the server sends goes wrong. Faults of HTTP do nothing here.
pub fn faulty_pipe(server: impl AsyncRead + AsyncWrite + Send + 'static, plan: FaultPlan) -> DuplexStream {
    let (client, end) = duplex(PIPE);
    // An error is that a side has left, which ends the pipe for the other.
    tokio::spawn(async move { relay(end, server, Faults::new(plan)).await.unwrap_or_default() });
    client
}

/// Passes lines between the two until the server ends or the connection is cut.
async fn relay(
    client: DuplexStream,
    server: impl AsyncRead + AsyncWrite + Send + 'static,
    mut faults: Faults,
) -> io::Result<()> {
    let (from_client, mut to_client) = split(client);
    let (from_server, mut to_server) = split(server);
    let mut from_client = BufReader::new(from_client).split(b'\n');
    let mut from_server = BufReader::new(from_server).split(b'\n');
    let (mut later, mut client_writes) = (JoinSet::new(), true);
    loop {
        let outputs = tokio::select! {
            read = from_client.next_segment(), if client_writes => {
                match read? {
                    Some(message) if Faults::is_answer_to_fault(&message) => {}
                    Some(message) => {
                        faults.client_message(0, &message);
                        to_server.write_all(&line(message)).await?;
                    }
                    None => {
                        client_writes = false;
                        to_server.shutdown().await?;
                    }
                }
                continue;
            }
            read = from_server.next_segment() => match read? {
                Some(message) => faults.server_message(0, &message),
                None => break,
            },
            Some(Ok(message)) = later.join_next() => vec![Output::Message(message)],
        };
        for output in outputs {
            match output {
                Output::Message(message) => to_client.write_all(&line(message)).await?,
                Output::Part(bytes) => to_client.write_all(&bytes).await?,
                Output::Later(delay, message) => {
                    later.spawn(async move {
                        sleep(delay).await;
                        message
                    });
                }
                Output::Slowly(rate, message) => {
                    for byte in line(message) {
                        to_client.write_all(&[byte]).await?;
                        sleep(Duration::from_secs(1) / rate.max(1)).await;
                    }
                }
                Output::Close(_) => {}
                Output::Cut => return Ok(()),
            }
        }
    }
    while let Some(late) = later.join_next().await {
        to_client.write_all(&line(late.unwrap_or_default())).await?;
    }
    Ok(())
}

fn line(mut message: Vec<u8>) -> Vec<u8> {
    message.push(b'\n');
    message
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;
    use tokio::time::Instant;

    use super::*;

    const PING: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
    const PONG: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n";

    /// What a client reads until the end, of a server that answers one ping and ends.
    async fn read(plan: &str) -> String {
        let (server, mut end) = duplex(1024);
        let mut client = faulty_pipe(server, plan.parse().unwrap());
        client.write_all(PING.as_bytes()).await.unwrap();
        let mut asked = vec![0; PING.len()];
        end.read_exact(&mut asked).await.unwrap();
        assert_eq!(asked, PING.as_bytes());
        end.write_all(PONG.as_bytes()).await.unwrap();
        drop(end);
        let mut read = String::new();
        client.read_to_string(&mut read).await.unwrap();
        read
    }

    #[tokio::test(start_paused = true)]
    async fn answers_go_wrong_as_the_plan_says() {
        assert_eq!(read("ping 2: no answer").await, PONG);
        assert_eq!(read("ping: no answer").await, "");
        assert_eq!(read("ping: answer twice").await, PONG.repeat(2));
        let begun = Instant::now();
        assert_eq!(read("ping: answer after 3s").await, PONG);
        assert_eq!(begun.elapsed(), Duration::from_secs(3));
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_stops_writing_still_gets_its_answer() {
        let (server, mut end) = duplex(1024);
        let mut client = faulty_pipe(server, "request 9: no answer".parse().unwrap());
        client.write_all(PING.as_bytes()).await.unwrap();
        client.shutdown().await.unwrap();
        let mut asked = String::new();
        end.read_to_string(&mut asked).await.unwrap();
        end.write_all(PONG.as_bytes()).await.unwrap();
        drop(end);
        let mut read = String::new();
        client.read_to_string(&mut read).await.unwrap();
        assert_eq!((&*asked, &*read), (PING, PONG));
    }
}
