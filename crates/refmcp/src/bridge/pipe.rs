//! A client at the end of a pipe: standard input and output, or a WebSocket.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use refmcp_proto::engine::client::TransportError;
use refmcp_proto::jsonrpc::RpcError;
use refmcp_proto::jsonrpc::encode::ResponseId;
use refmcp_transport::ConnectionEnd;
use refmcp_transport::pipe::{Frame, FrameReader, FrameWriter};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::Upstream;
use super::crossing::{Crossing, Over, Why, blame};
use super::glance::{in_one_line, read};
use super::outbox::Outbox;
use super::words;

/// Bytes of the longest message that a client may send.
pub(super) const MAX_MESSAGE_SIZE: usize = 64 << 20;

/// Bytes waiting to be written above which nothing more is read.
const HIGH_WATER: usize = 1 << 20;

/// How long answers are waited for once the bridge is told to stop.
const STOPPED_WITHIN: Duration = Duration::from_secs(2);

/// How long a client may take to read the last that there is for it.
const LAST_WORDS_WITHIN: Duration = Duration::from_secs(5);

/// How long a client may take to ask something of a server that cannot be reached, to be told so.
const ASKED_WITHIN: Duration = Duration::from_millis(500);

/// Passes messages between a client's pipe and a server until one of them is gone. Once the client has said
/// everything, answers that are due are waited for, as long as something comes within `patience`.
pub(super) async fn run<R: FrameReader, W: FrameWriter>(
    (reader, mut writer): (R, W),
    to: Upstream,
    patience: Duration,
    stop: &CancellationToken,
) -> Result<(), Over> {
    let outbox = Arc::new(Outbox::default());
    let crossing = tokio::select! {
        opened = Crossing::open(to, outbox.clone()) => opened,
        () = stop.cancelled() => return Ok(()),
    };
    let crossing = match crossing {
        Ok(crossing) => crossing,
        Err(why) => {
            turn_away(reader, &mut writer, &why).await;
            writer.close(ConnectionEnd::ShutDown).await;
            return Err(Over { why: Why::Server(why), reached: false });
        }
    };
    let mut end = Passing {
        reader,
        writer,
        outbox,
        crossing,
        patience,
        closing: None,
        input_ended: false,
        last_words_by: None,
    };
    let ended = end.run(stop).await;
    end.crossing.close().await;
    match &ended {
        Ok(end_of_client) => end.writer.close(*end_of_client).await,
        Err(_) => end.writer.close(ConnectionEnd::ShutDown).await,
    }
    ended.map(|_| ())
}

struct Passing<R, W> {
    reader: R,
    writer: W,
    outbox: Arc<Outbox>,
    crossing: Arc<Crossing>,
    patience: Duration,
    /// How it is going to end, and when at the latest.
    closing: Option<(ConnectionEnd, Instant)>,
    input_ended: bool,
    /// When there is nothing more to come: until when the client may take what there is.
    last_words_by: Option<Instant>,
}

impl<R: FrameReader, W: FrameWriter> Passing<R, W> {
    async fn run(&mut self, stop: &CancellationToken) -> Result<ConnectionEnd, Over> {
        loop {
            let all_taken = self.take_frames();
            let seen = self.outbox.count();
            self.hand_over();
            if let Some(end) = self.ended(all_taken)? {
                return Ok(end);
            }
            match self.next_event(stop).await {
                Ok(()) => {}
                Err(fault) => {
                    tracing::debug!(%fault, "the client has gone");
                    return Ok(ConnectionEnd::PeerGone);
                }
            }
            // A server that still speaks is still at work.
            if let Some((ConnectionEnd::Closed, until)) = &mut self.closing
                && self.outbox.count() > seen
            {
                *until = Instant::now() + self.patience;
            }
        }
    }

    /// Whether everything is said.
    fn ended(&mut self, all_taken: bool) -> Result<Option<ConnectionEnd>, Over> {
        // In this order: what was answered by then is in the outbox.
        let answered = self.crossing.waiting() == 0;
        let written = self.outbox.is_empty() && self.writer.pending() == 0;
        if let Some(over) = self.outbox.over() {
            // The client gets what there is for it, if it takes it.
            let until = *self.last_words_by.get_or_insert_with(|| Instant::now() + LAST_WORDS_WITHIN);
            return if written || Instant::now() >= until { Err(over) } else { Ok(None) };
        }
        let Some((end, until)) = self.closing else { return Ok(None) };
        if self.input_ended {
            self.crossing.refuse_questions();
        }
        let done = all_taken && answered && written;
        Ok((done || Instant::now() >= until).then_some(end))
    }

    async fn next_event(&mut self, stop: &CancellationToken) -> io::Result<()> {
        let (room, full) = (self.has_room(), self.crossing.is_full());
        let until = self.last_words_by.or(self.closing.map(|(_, until)| until));
        tokio::select! {
            flushed = self.writer.flush(), if self.writer.pending() > 0 => flushed?,
            () = self.outbox.changed() => {}
            more = self.reader.fill(), if room && !full && !self.input_ended => match more {
                Ok(true) => {}
                Ok(false) => self.end_of_input(),
                Err(fault) => {
                    tracing::debug!(%fault, "the client has gone");
                    self.end_of_input();
                }
            },
            () = self.crossing.ready(), if full => {}
            () = at(until) => {}
            () = stop.cancelled(), if !matches!(self.closing, Some((ConnectionEnd::ShutDown, _))) => {
                self.closing = Some((ConnectionEnd::ShutDown, Instant::now() + STOPPED_WITHIN));
            }
        }
        Ok(())
    }

    fn has_room(&self) -> bool {
        self.writer.pending() < HIGH_WATER
    }

    /// Passes on what the client has said by now, while there is room for it; whether that was all.
    fn take_frames(&mut self) -> bool {
        while self.has_room() && !self.crossing.is_full() {
            let Some(frame) = self.reader.next_frame() else { return true };
            match frame {
                Frame::Message(bytes) => match read(bytes) {
                    Ok(messages) => {
                        for message in &messages {
                            self.crossing.pass(self.crossing.number(), message);
                        }
                    }
                    Err(error) => self.outbox.push(&words::error(ResponseId::Null, &error)),
                },
                Frame::TooLong => {
                    let error = RpcError::invalid_request(format!(
                        "the message is longer than {MAX_MESSAGE_SIZE} bytes"
                    ));
                    self.outbox.push(&words::error(ResponseId::Null, &error));
                }
            }
        }
        false
    }

    /// Queues what there is for the client, while it takes it.
    fn hand_over(&mut self) {
        while self.has_room()
            && let Some(json) = self.outbox.pop()
        {
            self.writer.push(in_one_line(&json).as_bytes());
        }
    }

    fn end_of_input(&mut self) {
        self.input_ended = true;
        self.closing.get_or_insert((ConnectionEnd::Closed, Instant::now() + self.patience));
    }
}

async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Tells a client that its server cannot be reached, if it asks before long.
async fn turn_away<R: FrameReader, W: FrameWriter>(mut reader: R, writer: &mut W, why: &TransportError) {
    let telling = async {
        let mut told = false;
        while !told && reader.fill().await? {
            while let Some(frame) = reader.next_frame() {
                let Frame::Message(bytes) = frame else { continue };
                for message in read(bytes).unwrap_or_default() {
                    if let Some(id) = message.asks() {
                        writer.push(words::error(ResponseId::Id(id), &blame(why)).as_bytes());
                        told = true;
                    }
                }
            }
            while writer.pending() > 0 {
                writer.flush().await?;
            }
        }
        io::Result::Ok(())
    };
    match timeout(ASKED_WITHIN, telling).await {
        Ok(Ok(())) | Err(_) => {}
        Ok(Err(fault)) => tracing::debug!(%fault, "the client has gone"),
    }
}

#[cfg(test)]
mod tests {
    use refmcp_client::transport::{BoxFuture, Connector, MessageSink, Transport};
    use refmcp_proto::engine::client::ClientMessage;
    use refmcp_transport::memory;

    use super::*;

    /// A server that has one thing to say and then goes.
    struct OneAnswer {
        sink: Arc<dyn MessageSink>,
        json: String,
    }

    impl std::fmt::Debug for OneAnswer {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("OneAnswer")
        }
    }

    impl Transport for OneAnswer {
        fn send(self: Arc<Self>, _: ClientMessage) {
            tokio::spawn(async move {
                self.sink.message(None, self.json.as_bytes());
                self.sink.closed(TransportError::Broken("it was tired".to_owned()));
            });
        }

        fn close(self: Arc<Self>) -> BoxFuture<'static, ()> {
            Box::pin(std::future::ready(()))
        }
    }

    #[derive(Debug)]
    struct Tired(String);

    impl Connector for Tired {
        fn connect(
            &self,
            sink: Arc<dyn MessageSink>,
        ) -> BoxFuture<'_, Result<Arc<dyn Transport>, TransportError>> {
            Box::pin(
                async move { Ok(Arc::new(OneAnswer { sink, json: self.0.clone() }) as Arc<dyn Transport>) },
            )
        }

        fn name(&self) -> String {
            "tired".to_owned()
        }
    }

    #[tokio::test]
    async fn the_last_words_of_a_server_are_passed_on_however_long_they_are() {
        let long = format!(r#"{{"jsonrpc":"2.0","id":1,"result":"{}"}}"#, "x".repeat(2 * HIGH_WATER));
        let (near, (mut reader, mut writer)) = memory::pair(MAX_MESSAGE_SIZE);
        let stop = CancellationToken::new();
        let to = Upstream { connector: Arc::new(Tired(long.clone())), observer: None };
        let passing = tokio::spawn(async move { run(near, to, Duration::from_secs(60), &stop).await });
        writer.push(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
        while writer.pending() > 0 {
            writer.flush().await.unwrap();
        }
        let mut heard = Vec::new();
        while heard.is_empty() && reader.fill().await.unwrap() {
            if let Some(Frame::Message(bytes)) = reader.next_frame() {
                heard = bytes.to_vec();
            }
        }
        assert!(heard == long.as_bytes(), "{} bytes", heard.len());
        let over = passing.await.unwrap().unwrap_err();
        assert!(over.reached && over.why.to_string().contains("it was tired"), "{over:?}");
    }
}
