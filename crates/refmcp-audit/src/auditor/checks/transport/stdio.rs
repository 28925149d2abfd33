//! Rules about stdio: lines are messages, each on one line.

use refmcp_proto::rule::{self, Rule};
use serde_json::Value;

use crate::auditor::checks::{Check, Context};
use crate::recording::{Event, EventKind};
use crate::verdict::Role;

pub(in crate::auditor::checks) static RULES: &[&Rule] = &[&rule::STDIO_01, &rule::STDIO_02, &rule::STDIO_03];

#[derive(Debug, Default)]
pub(in crate::auditor::checks) struct Stdio {
    /// The lines of a message that has not ended, of the client and of the server.
    begun: [Vec<u8>; 2],
}

/// Bytes of a message on several lines that are kept; a longer one counts as something else.
const MAX_BEGUN: usize = 64 << 10;

/// Why a line is told that has not ended.
const UNFINISHED: &str = "a line without an end";

impl Check for Stdio {
    fn event(&mut self, event: &Event, context: &mut Context<'_>) {
        if context.state.transport != "stdio" {
            return;
        }
        match &event.kind {
            EventKind::Message { direction, .. } => {
                let role = context.state.sender(*direction);
                if !std::mem::take(self.begun(role)).is_empty() {
                    other_than_messages(role, context);
                }
                [&rule::STDIO_01, &rule::STDIO_02, &rule::STDIO_03]
                    .into_iter()
                    .for_each(|rule| context.kept(rule));
            }
            // The rest of a message may come: a line whose end is awaited is told before that.
            EventKind::Invalid { bytes, why, .. } if why == UNFINISHED && bytes.starts_with(b"{") => {}
            // What is no text is judged as a message in another encoding.
            EventKind::Invalid { direction, bytes, .. }
                if !bytes.is_empty() && std::str::from_utf8(bytes).is_ok() =>
            {
                self.line(context.state.sender(*direction), bytes, context);
            }
            _ => {}
        }
    }
}

impl Stdio {
    fn begun(&mut self, role: Role) -> &mut Vec<u8> {
        let [client, server] = &mut self.begun;
        match role {
            Role::Client => client,
            Role::Server => server,
        }
    }

    /// A line that is no message. One that is JSON is judged as a message.
    fn line(&mut self, role: Role, line: &[u8], context: &mut Context<'_>) {
        let begun = self.begun(role);
        if begun.is_empty() && !line.trim_ascii_start().starts_with(b"{") {
            if serde_json::from_slice::<Value>(line).is_err() {
                other_than_messages(role, context);
            }
            return;
        }
        begun.extend_from_slice(line);
        begun.push(b'\n');
        let mut values = serde_json::Deserializer::from_slice(begun).into_iter::<Value>();
        let whole = values.by_ref().take_while(Result::is_ok).count();
        let rest = serde_json::from_slice::<Value>(begun.get(values.byte_offset()..).unwrap_or_default());
        let is_incomplete = rest.is_err_and(|error| error.is_eof());
        let lines = begun.iter().filter(|byte| **byte == b'\n').count();
        match (whole, is_incomplete) {
            (0, true) if begun.len() <= MAX_BEGUN => return,
            (1, true) if lines == 1 => {}
            (1, true) => one_line(role, "a message is spread over several lines", context),
            (2.., true) => one_line(role, "several messages stand on one line", context),
            _ => other_than_messages(role, context),
        }
        begun.clear();
    }
}

fn one_line(role: Role, what: &str, context: &mut Context<'_>) {
    let expected = "write each message on a line of its own, without line breaks inside";
    context.judge_party(&rule::STDIO_01, role, Some((what.to_owned(), expected)));
}

/// The line is neither a message nor a part of one.
fn other_than_messages(role: Role, context: &mut Context<'_>) {
    let (rule, what, expected) = match role {
        Role::Client => {
            (&rule::STDIO_03, "a line on standard input is no JSON", "write messages only to the server")
        }
        Role::Server => (
            &rule::STDIO_02,
            "a line on standard output is no JSON",
            "write messages only to standard output, and logs to standard error",
        ),
    };
    context.judge_party(rule, role, Some((what.to_owned(), expected)));
}
