//! `--trace FILE` and `--output jsonl`: what passes, as JSON lines. Messages are written as they are; secrets in HTTP heads
//! are masked.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;
use refmcp_client::redact;
use refmcp_proto::finding::Finding;
use refmcp_transport::observer::{
    Direction, EventContext, Head, InvalidInput, MessageEvent, Observer, Refused, Side, StartLine,
};
use serde::Serialize;

use crate::store::append_private;
use crate::ui::output::print_json;
use crate::ui::redact::masked;

/// Writes events to a file, and messages to standard output.
pub(crate) struct Tracer {
    file: Option<Mutex<File>>,
    stdout: bool,
}

impl Tracer {
    /// Writes to a file, to standard output or to both; `None` if to neither.
    pub(crate) fn new(file: Option<&Path>, stdout: bool) -> Result<Option<Self>> {
        let open = |path: &Path| {
            append_private(path).with_context(|| format!("cannot write the trace to {}", path.display()))
        };
        let file = file.map(open).transpose()?.map(Mutex::new);
        Ok((file.is_some() || stdout).then_some(Self { file, stdout }))
    }

    fn write(&self, line: Line, is_message: bool) {
        let mut text = line.0;
        text.extend(b"}\n");
        if let Some(file) = &self.file
            && let Err(fault) = file.lock().write_all(&text)
        {
            tracing::warn!("the trace is incomplete: {fault}");
        }
        if self.stdout
            && is_message
            && let Err(fault) = print_json(&String::from_utf8_lossy(&text))
        {
            tracing::warn!("the output is incomplete: {fault}");
        }
    }
}

impl Observer for Tracer {
    fn opened(&self, context: &EventContext<'_>) {
        let side = match context.side {
            Side::Client => "client",
            Side::Server => "server",
        };
        let line = Line::new(context, "opened").member("side", side).member("transport", context.transport);
        self.write(line.member("peer", context.peer), false);
    }

    fn message(&self, context: &EventContext<'_>, message: &MessageEvent<'_>) {
        let mut line = Line::new(context, "message").direction(message.direction);
        line.0.extend(b",\"message\":");
        // Line breaks stand between the members of a JSON text, never within one.
        let is_break = |byte: &u8| matches!(byte, b'\n' | b'\r');
        line.0.extend(message.bytes.iter().map(|byte| if is_break(byte) { b' ' } else { *byte }));
        self.write(line, true);
    }

    fn invalid_input(&self, context: &EventContext<'_>, input: &InvalidInput<'_>) {
        let line = Line::new(context, "invalid").direction(input.direction).member("why", input.why);
        // The body of a refusal may repeat a secret of the request.
        match std::str::from_utf8(input.bytes) {
            Ok(text) => self.write(line.member("text", &masked(text)), true),
            Err(_) => self.write(line.bytes(input.bytes), true),
        }
    }

    fn head(&self, context: &EventContext<'_>, head: &Head<'_>) {
        let line = Line::new(context, "head").direction(head.direction);
        let line = match head.start {
            StartLine::Request { method, target } => {
                line.member("method", method).member("target", &redact::target(target))
            }
            StartLine::Response { status } => line.member("status", &status),
        };
        let mut fields = BTreeMap::<&str, String>::new();
        for (name, value) in head.fields {
            let value = String::from_utf8_lossy(value);
            let before = fields.entry(*name).or_default();
            *before += if before.is_empty() { "" } else { ", " };
            // The user may have given one of those that may be shown, with a secret in it.
            *before += &masked(redact::header(name, &value));
        }
        self.write(line.member("headers", &fields), false);
    }

    fn refused(&self, context: &EventContext<'_>, refusal: &Refused<'_>) {
        let line = Line::new(context, "refused").member("status", &refusal.status);
        self.write(line.member("reason", refusal.reason).member("why", refusal.why), false);
    }

    fn stream_failed(&self, context: &EventContext<'_>, why: &str) {
        self.write(Line::new(context, "failed").member("why", why), false);
    }

    fn finding(&self, context: &EventContext<'_>, finding: &Finding, _: Option<&[u8]>) {
        let line = Line::new(context, "finding").member("rule", finding.rule.id);
        self.write(line.member("what", &finding.what).member("expected", &finding.expected), false);
    }

    fn stderr(&self, context: &EventContext<'_>, bytes: &[u8]) {
        self.write(Line::new(context, "stderr").bytes(bytes), false);
    }

    fn closed(&self, context: &EventContext<'_>, why: &str) {
        self.write(Line::new(context, "closed").member("why", why), false);
    }
}

/// A JSON object on a line, open for more members.
struct Line(Vec<u8>);

impl Line {
    fn new(context: &EventContext<'_>, event: &str) -> Self {
        let line = Self(format!("{{\"at\":{}", context.time.as_millis()).into());
        let line = line.member("event", event).member("connection", &context.connection.0);
        let line = match context.revision {
            Some(revision) => line.member("revision", revision.as_str()),
            None => line,
        };
        match context.stream {
            Some(stream) => line.member("stream", &stream.0),
            None => line,
        }
    }

    fn member(mut self, name: &str, value: &(impl Serialize + ?Sized)) -> Self {
        self.0.extend(format!(",\"{name}\":").bytes());
        // Strings, numbers and maps of them do not fail to be written.
        let _ = serde_json::to_writer(&mut self.0, value);
        self
    }

    fn direction(self, direction: Direction) -> Self {
        self.member("direction", if direction == Direction::Sent { "sent" } else { "received" })
    }

    /// Bytes as text, or in base64 where they are none.
    fn bytes(self, bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => self.member("text", text),
            Err(_) => self.member("base64", &STANDARD.encode(bytes)),
        }
    }
}
