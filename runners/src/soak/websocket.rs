//! A client of WebSocket: text frames, of which each is a message.

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::http::{LIMIT, Target};

const TEXT: u8 = 1;
pub(super) const CLOSE: u8 = 8;
pub(super) const PING: u8 = 9;
const PONG: u8 = 10;

/// What came of a handshake.
pub(super) enum Handshake {
    Open(WebSocket),
    /// The server has no room.
    Refused,
}

pub(super) struct WebSocket {
    pub(super) stream: TcpStream,
}

impl WebSocket {
    pub(super) async fn open(target: Target) -> Result<Handshake> {
        let mut stream = target.connect().await?;
        let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
            Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\nSec-WebSocket-Protocol: mcp\r\n";
        let request = target.request("GET /mcp/ws", upgrade, "");
        let head = timeout(LIMIT, async {
            stream.write_all(&request).await?;
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await?);
            }
            anyhow::Ok(String::from_utf8(head)?)
        });
        let head = head.await.context("the handshake took too long")??;
        match head.get(9..12) {
            Some("101") => Ok(Handshake::Open(Self { stream })),
            Some("429" | "503") => Ok(Handshake::Refused),
            _ => bail!("no handshake: {head:?}"),
        }
    }

    pub(super) async fn send(&mut self, message: &str) -> Result<()> {
        Ok(self.stream.write_all(&frame(TEXT, message.as_bytes())).await?)
    }

    /// The next message; pings are answered.
    pub(super) async fn next(&mut self) -> Result<Value> {
        loop {
            let (kind, payload) = timeout(LIMIT, self.frame()).await.context("no frame came")??;
            match kind {
                TEXT => return Ok(serde_json::from_slice(&payload)?),
                PING => self.stream.write_all(&frame(PONG, &payload)).await?,
                PONG => {}
                _ => bail!(
                    "the server closed the WebSocket: {:?}",
                    payload.get(2..).map(String::from_utf8_lossy)
                ),
            }
        }
    }

    async fn frame(&mut self) -> Result<(u8, Vec<u8>)> {
        let mut head = [0; 2];
        self.stream.read_exact(&mut head).await?;
        ensure!(head[0] & 0x80 != 0, "the server splits messages");
        let length = match head[1] {
            126 => u64::from(self.stream.read_u16().await?),
            127 => self.stream.read_u64().await?,
            short => u64::from(short),
        };
        let mut payload = vec![0; usize::try_from(length)?];
        self.stream.read_exact(&mut payload).await?;
        Ok((head[0] & 0x0f, payload))
    }
}

/// A frame of a client. Its mask is zero, which changes nothing.
pub(super) fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    const MASKED: u8 = 0x80;
    let mut frame = vec![0x80 | kind];
    match payload.len() {
        length @ ..126 => frame.push(MASKED | length as u8),
        length => {
            frame.push(MASKED | 127);
            frame.extend((length as u64).to_be_bytes());
        }
    }
    frame.extend([0; 4]);
    frame.extend(payload);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_stand_before_the_mask() {
        assert_eq!(frame(PING, b"hi"), [0x89, 0x82, 0, 0, 0, 0, b'h', b'i']);
        let long = frame(TEXT, &[b'x'; 300]);
        assert_eq!((&long[..10], long.len()), (&[0x81, 0xff, 0, 0, 0, 0, 0, 0, 1, 44][..], 314));
    }
}
