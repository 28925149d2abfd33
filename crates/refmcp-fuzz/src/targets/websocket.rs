//! WebSocket frames: messages stay below the limit, reading ends, and what ends it is told to the peer.

use std::time::Duration;

use refmcp_transport::pipe::{Frame, FrameReader};
use refmcp_transport::websocket::{Role, WebSocketSettings, pipe};
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

use crate::input::Input;

const SETTINGS: WebSocketSettings = WebSocketSettings {
    max_message_size: 64,
    ping_every: Duration::from_secs(10),
    first_within: Duration::from_secs(60),
};

/// Room for everything that is sent either way, so that only reading is tried.
const BUFFER: usize = 1 << 20;

/// The first byte tells whether the rest is bytes of a socket, or frames to be masked: a first byte each, then a line.
pub fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let (raw, quiet) = (input.flag(), input.flag());
    let stream = if raw { input.rest().to_vec() } else { frames(input) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(read(&stream, quiet));
}

/// Frames of a client, with a mask that changes nothing.
fn frames(mut input: Input<'_>) -> Vec<u8> {
    let mut stream = Vec::new();
    while !input.is_empty() {
        let (first, payload) = (input.byte(), input.line());
        let payload = &payload[..payload.len().min(200)];
        stream.push(first);
        match u8::try_from(payload.len()) {
            Ok(short) if short < 126 => stream.push(0x80 | short),
            _ => stream.extend([0x80 | 126, 0, payload.len().to_le_bytes()[0]]),
        }
        stream.extend([0; 4]);
        stream.extend(payload);
    }
    stream
}

async fn read(stream: &[u8], quiet: bool) {
    let (ours, mut theirs) = duplex(BUFFER);
    theirs.write_all(stream).await.expect("room for all");
    let mut peer = None;
    if quiet {
        // The peer stays and says nothing more.
        peer = Some(theirs);
    } else {
        theirs.shutdown().await.expect("an open stream");
        peer = peer.or(Some(theirs));
    }
    let (mut reader, writer) = pipe(ours, Role::Server, SETTINGS).await;
    let mut received = 0;
    let ended = loop {
        match reader.fill().await {
            Ok(true) => {
                while let Some(frame) = reader.next_frame() {
                    let Frame::Message(text) = frame else {
                        panic!("a frame that is too long ends the socket")
                    };
                    assert!(text.len() <= SETTINGS.max_message_size && std::str::from_utf8(text).is_ok());
                    received += text.len();
                }
            }
            Ok(false) => break None,
            Err(error) => break Some(error),
        }
    };
    assert!(received <= stream.len());
    drop((reader, writer));
    let mut sent = Vec::new();
    peer.expect("the peer").read_to_end(&mut sent).await.expect("a closed stream");
    let codes = close_codes(&sent);
    assert!(codes.len() <= 1, "closed {} times", codes.len());
    if let Some(error) = ended {
        assert!(!error.to_string().is_empty());
        let told = error.kind() == std::io::ErrorKind::InvalidData;
        assert!(
            !told || matches!(codes[..], [1002 | 1003 | 1007 | 1008 | 1009]),
            "{error}: closed with {codes:?}"
        );
    }
}

/// The codes of close frames among frames without a mask; all frames must be whole.
fn close_codes(mut sent: &[u8]) -> Vec<u16> {
    let mut codes = Vec::new();
    while let [first, second, rest @ ..] = sent {
        assert!(*second < 126, "a control frame is short and has no mask");
        let (payload, after) = rest.split_at_checked(usize::from(*second)).expect("a whole frame");
        match first {
            0x88 => codes.push(payload.first_chunk().map_or(0, |code| u16::from_be_bytes(*code))),
            0x89 | 0x8A => {}
            other => panic!("a frame {other:#x} that the reader has no reason to send"),
        }
        sent = after;
    }
    assert!(sent.is_empty(), "half a frame");
    codes
}
