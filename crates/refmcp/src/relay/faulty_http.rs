//! Fault injection in the response to one HTTP request, and on a WebSocket.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE};
use hyper::http::request::Parts;
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Response, StatusCode};
use hyper_util::rt::TokioIo;
use refmcp_client::observer::{Direction, Observed};
use refmcp_faults::{Fault, Faults, Output};
use refmcp_transport::driver::ConnectionEnd;
use refmcp_transport::pipe::{Frame, FrameReader, FrameWriter};
use refmcp_transport::websocket::{Role, WebSocketSettings, pipe};

use super::faults::{self, Encode, EventBlocks, MAX_MESSAGE, Sender, SharedFaults};
use super::http::{ResponseBody, empty_response, own_response};
use super::taps::Tap;

/// What is planned for one HTTP request.
pub(super) struct Planned {
    faults: SharedFaults,
    /// The number of the request, or of the one whose stream has the answer.
    channel: u64,
    is_answered_elsewhere: bool,
    of_http: Vec<Fault>,
    is_expired: bool,
    /// The client answers a request that the server did not make.
    is_answer_to_fault: bool,
}

impl Planned {
    pub(super) fn new(faults: &SharedFaults, request: u64, head: &Parts, body: &Bytes) -> Self {
        let elsewhere = (head.method == Method::POST).then(|| faults.answered_on(&head.uri)).flatten();
        let channel = elsewhere.unwrap_or(request);
        let is_stream = head.method == Method::GET
            && head.headers.get(ACCEPT).is_some_and(|kinds| accepts_events(kinds.as_bytes()));
        let of_http = if is_stream { faults.stream_opened() } else { faults.client_message(channel, body) };
        let is_expired = faults.is_expired(&head.headers, of_http.contains(&Fault::ExpireSession));
        let is_answer_to_fault = Faults::is_answer_to_fault(body);
        let is_answered_elsewhere = elsewhere.is_some();
        Self {
            faults: faults.clone(),
            channel,
            is_answered_elsewhere,
            of_http,
            is_expired,
            is_answer_to_fault,
        }
    }

    /// The response without the server, where one is planned.
    pub(super) fn refusal(&self, stream: &Observed) -> Option<Response<ResponseBody>> {
        if self.is_expired {
            return Some(own_response(stream, StatusCode::NOT_FOUND, &"the session has expired, as planned"));
        }
        if self.is_answer_to_fault {
            return Some(empty_response(StatusCode::ACCEPTED));
        }
        let (status, retry_after) = faults::status(&self.of_http)?;
        let mut response = own_response(stream, status, &"this status is planned");
        faults::retry_after(response.headers_mut(), retry_after);
        Some(response)
    }

    /// The response with what is planned for it.
    pub(super) async fn respond(
        self,
        response: Response<Incoming>,
        tap: Tap,
        stream: Observed,
    ) -> Response<ResponseBody> {
        let (mut head, body) = response.into_parts();
        let kind = head.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let is_events = kind.starts_with("text/event-stream");
        head.headers.remove(CONTENT_LENGTH);
        faults::change_head(&self.of_http, &mut head.headers);
        let encode: Encode = if is_events { faults::event } else { <[u8]>::to_vec };
        let (sender, sent) = Sender::body(tap, encode, stream);
        if is_events {
            tokio::spawn(self.send_events(body, sender));
        } else {
            let outputs = self.whole(body).await;
            tokio::spawn(send_whole(outputs, sender));
        }
        Response::from_parts(head, sent.map_err(Into::into).boxed_unsync())
    }

    /// What is sent for a body that is one message; a message without an answer is waited for until the client leaves.
    async fn whole(&self, body: Incoming) -> Vec<Output> {
        let body = match Limited::new(body, MAX_MESSAGE).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) => {
                tracing::warn!(%error, "a response was not read");
                return vec![Output::Cut];
            }
        };
        let outputs = match body.is_empty() {
            true => return Vec::new(),
            false if self.is_answered_elsewhere => return vec![Output::Message(body.to_vec())],
            false => self.faults.server_message(self.channel, &body),
        };
        if outputs.is_empty() {
            std::future::pending::<()>().await;
        }
        outputs
    }

    /// Passes events on, and forgets where they were answers to.
    async fn send_events(self, body: Incoming, sender: Sender) {
        self.pass_events(body, sender).await;
        self.faults.stream_ended(self.channel);
    }

    /// An answer that is left out leaves its stream open.
    async fn pass_events(&self, mut body: Incoming, mut sender: Sender) {
        let (mut blocks, mut is_held) = (EventBlocks::default(), false);
        while let Some(frame) = body.frame().await {
            let data = match frame.map(hyper::body::Frame::into_data) {
                Ok(Ok(data)) => data,
                Ok(Err(_)) => continue,
                Err(error) => {
                    tracing::debug!(%error, "the server ended a stream");
                    return sender.send(vec![Output::Cut]).await;
                }
            };
            blocks.feed(&data);
            if blocks.len() > MAX_MESSAGE {
                return sender.send(vec![Output::Cut]).await;
            }
            while let Some(block) = blocks.next_block() {
                let (data, others) = faults::event_parts(&block);
                if data.is_empty() {
                    sender.write(block).await;
                    continue;
                }
                if others == b"event: endpoint\n" || others == b"event:endpoint\n" {
                    self.faults.endpoint_named(self.channel, &data);
                    let wrong = self.of_http.iter().find_map(|fault| match fault {
                        Fault::WrongEndpoint(uri) => {
                            Some([&others[..], &faults::event(uri.as_bytes())].concat())
                        }
                        _ => None,
                    });
                    sender.write(wrong.unwrap_or(block)).await;
                    continue;
                }
                let outputs = self.faults.server_message(self.channel, &data);
                is_held |= outputs.is_empty();
                for output in outputs {
                    match output {
                        Output::Message(message) if message == data => sender.write(block.clone()).await,
                        Output::Message(message) => {
                            sender.write([&others[..], &faults::event(&message)].concat()).await;
                        }
                        other => sender.send(vec![other]).await,
                    }
                }
            }
        }
        if is_held {
            sender.hold().await;
        }
        sender.finish().await;
    }

    /// Passes the messages of a WebSocket on, those of the server with what is planned.
    pub(super) async fn tunnel(self, client: OnUpgrade, server: OnUpgrade, observed: Observed) {
        let (client, server) = match tokio::try_join!(client, server) {
            Ok(both) => both,
            Err(error) => return observed.stream_failed(&error),
        };
        let (mut from_client, mut to_client) = pipe(TokioIo::new(client), Role::Server, SETTINGS).await;
        let (mut from_server, mut to_server) = pipe(TokioIo::new(server), Role::Client, SETTINGS).await;
        let sending = async {
            while let Some(messages) = read(&mut from_client).await {
                for message in messages {
                    observed.passed(Direction::Sent, &message);
                    if !Faults::is_answer_to_fault(&message) {
                        self.faults.client_message(self.channel, &message);
                        write(&mut to_server, &message).await?;
                    }
                }
            }
            Some(())
        };
        let receiving = async {
            while let Some(messages) = read(&mut from_server).await {
                for message in messages {
                    for output in self.faults.server_message(self.channel, &message) {
                        let (Output::Message(message) | Output::Part(message)) = (match output {
                            Output::Later(delay, message) => {
                                tokio::time::sleep(delay).await;
                                Output::Message(message)
                            }
                            Output::Slowly(rate, message) => {
                                let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
                                tokio::time::sleep(Duration::from_secs(1) * length / rate.max(1)).await;
                                Output::Message(message)
                            }
                            Output::Close(code) => {
                                to_client.stop_reason().set(code, "this code is planned");
                                to_client.close(ConnectionEnd::ShutDown).await;
                                return None;
                            }
                            other => other,
                        }) else {
                            return None;
                        };
                        observed.passed(Direction::Received, &message);
                        write(&mut to_client, &message).await?;
                    }
                }
            }
            Some(())
        };
        // What one side has ended ends for the other; sockets that are dropped are cut.
        tokio::select! {
            _ = sending => {}
            _ = receiving => {}
        }
    }
}

/// Both ends are programs of others: what they send is passed on whatever its size, and they ask each other whether they are
/// there.
const SETTINGS: WebSocketSettings = WebSocketSettings {
    max_message_size: MAX_MESSAGE,
    ping_every: Duration::from_secs(24 * 3600),
    first_within: Duration::from_secs(24 * 3600),
};

/// Whether an `Accept` is that of a stream.
fn accepts_events(kinds: &[u8]) -> bool {
    std::str::from_utf8(kinds).is_ok_and(|kinds| kinds.contains("text/event-stream"))
}

async fn send_whole(outputs: Vec<Output>, mut sender: Sender) {
    sender.send(outputs).await;
    sender.finish().await;
}

/// The next messages; `None` at the end.
async fn read(reader: &mut impl FrameReader) -> Option<Vec<Vec<u8>>> {
    loop {
        let mut messages = Vec::new();
        while let Some(frame) = reader.next_frame() {
            if let Frame::Message(bytes) = frame {
                messages.push(bytes.to_owned());
            }
        }
        if !messages.is_empty() {
            return Some(messages);
        }
        if !reader.fill().await.ok()? {
            return None;
        }
    }
}

/// Writes a message; `None` where its reader is gone.
async fn write(writer: &mut impl FrameWriter, message: &[u8]) -> Option<()> {
    writer.push(message);
    while writer.pending() > 0 {
        writer.flush().await.ok()?;
    }
    Some(())
}
