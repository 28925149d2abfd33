//! What differs between two recordings, request by request. What changes from run to run by its nature does not count: ids,
//! tokens, cursors, times, and the order of messages that belong to different requests.

mod change;
mod group;
mod normal;
mod text;

use serde::Serialize;

use super::conversation::RecordedConversation;
use super::part::{Part, PartKind};
use crate::verdict::Role;
pub use change::{Change, ChangeKind};
pub use text::comparison_text;

use group::{Group, groups};
use normal::Normal;

/// Differences that are kept, and changes of each.
const MAX_DIFFERENCES: usize = 10_000;
/// Changes that are kept of a message.
pub(super) const MAX_CHANGES: usize = 200;

/// Two recordings beside each other.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Comparison {
    /// Messages of the first recording.
    pub before: usize,
    /// Messages of the second recording.
    pub after: usize,
    /// Requests that both have, whose answers and other messages are the same.
    pub same: usize,
    /// Where they differ.
    pub differences: Vec<Difference>,
}

/// A message in which two recordings differ.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Difference {
    /// What differs.
    pub kind: DifferenceKind,
    /// The request that it belongs to, in short; none where it belongs to no request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// The message in short: `response`, or its method.
    pub message: String,
    /// Who sent it.
    #[serde(skip)]
    pub from: Role,
    /// Its line in the first recording.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line_before: Option<usize>,
    /// Its line in the second recording.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line_after: Option<usize>,
    /// What has changed in it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
}

/// How a message differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DifferenceKind {
    /// The second recording has it alone.
    Added,
    /// The first recording has it alone.
    Missing,
    /// Both have it, with different members.
    Changed,
}

impl Comparison {
    /// What differs between the messages of two recordings. `ignored` are JSON pointers to members that do not count; in them `*`
    /// stands for any one name or index, and a pointer holds for all below.
    pub fn between(
        before: &[RecordedConversation],
        after: &[RecordedConversation],
        ignored: &[String],
    ) -> Self {
        let normal = Normal::new(ignored);
        let by_stream = before.iter().chain(after).all(|it| it.transport == "http");
        let (left, right) = (groups(before, &normal, by_stream), groups(after, &normal, by_stream));
        let count =
            |conversations: &[RecordedConversation]| conversations.iter().map(|it| it.parts.len()).sum();
        let mut comparison =
            Self { before: count(before), after: count(after), same: 0, differences: Vec::new() };
        let pairs = group::paired(&left, &right);
        for (before, after) in pairs {
            let found = comparison.differences.len();
            comparison.compare(before, after);
            let is_request = before.or(after).is_some_and(|group| group.request.is_some());
            comparison.same += usize::from(is_request && comparison.differences.len() == found);
        }
        comparison
    }

    /// Whether nothing differs.
    pub fn is_same(&self) -> bool {
        self.differences.is_empty()
    }

    fn compare(&mut self, before: Option<&Group<'_>>, after: Option<&Group<'_>>) {
        match (before, after) {
            (Some(before), Some(after)) => {
                let label = before.label();
                if let (Some(old), Some(new)) = (before.request(), after.request()) {
                    self.pair(label.as_deref(), Some(old), Some(new));
                }
                if let (Some(old), Some(new)) = (before.status, after.status)
                    && old != new
                {
                    let mut difference = Difference::new(label.as_deref(), before.request(), after.request());
                    difference.message = "HTTP status".to_owned();
                    difference.from = Role::Server;
                    difference.changes.push(Change::of_values("", Some(&old.into()), Some(&new.into())));
                    self.add(difference);
                }
                for (old, new) in group::paired_messages(&before.messages, &after.messages) {
                    self.pair(label.as_deref(), old, new);
                }
            }
            // Of a request that one side lacks, nothing else is said.
            (Some(group), None) | (None, Some(group)) => match group.request() {
                Some(request) if before.is_some() => self.pair(None, Some(request), None),
                Some(request) => self.pair(None, None, Some(request)),
                None => {
                    for message in &group.messages {
                        let message = Some(message);
                        let (old, new) = if before.is_some() { (message, None) } else { (None, message) };
                        self.pair(None, old, new);
                    }
                }
            },
            (None, None) => {}
        }
    }

    fn pair(
        &mut self,
        label: Option<&str>,
        before: Option<&group::Message<'_>>,
        after: Option<&group::Message<'_>>,
    ) {
        let mut difference = Difference::new(label, before, after);
        if let (Some(before), Some(after)) = (before, after) {
            difference.changes = change::changes(&before.value, &after.value);
            if difference.changes.is_empty() {
                return;
            }
        }
        self.add(difference);
    }

    fn add(&mut self, difference: Difference) {
        if self.differences.len() < MAX_DIFFERENCES {
            self.differences.push(difference);
        }
    }
}

impl Difference {
    fn new(
        label: Option<&str>,
        before: Option<&group::Message<'_>>,
        after: Option<&group::Message<'_>>,
    ) -> Self {
        let kind = match (before, after) {
            (None, _) => DifferenceKind::Added,
            (_, None) => DifferenceKind::Missing,
            _ => DifferenceKind::Changed,
        };
        let part = before.or(after).map(|message| message.part);
        Self {
            kind,
            request: label.map(str::to_owned),
            message: part.map(name).unwrap_or_default(),
            from: part.map_or(Role::Server, |part| part.from),
            line_before: before.map(|message| message.part.line),
            line_after: after.map(|message| message.part.line),
            changes: Vec::new(),
        }
    }
}

/// A message in short, beside the request that it belongs to.
fn name(part: &Part) -> String {
    match part.kind {
        PartKind::Response { .. } => "response".to_owned(),
        _ => part.label(),
    }
}
