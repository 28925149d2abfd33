//! Messages by the request that they belong to, and the groups and messages of two recordings beside each other.

use std::collections::HashMap;

use serde_json::Value;

use super::normal::Normal;
use crate::replay::conversation::RecordedConversation;
use crate::replay::part::{Part, PartKind};
use crate::verdict::Role;

/// A request of the client and what belongs to it; or one message that belongs to no request.
#[derive(Debug)]
pub(super) struct Group<'a> {
    pub(super) request: Option<Message<'a>>,
    /// Over HTTP, the status of the response.
    pub(super) status: Option<u16>,
    /// What belongs to it, in its order.
    pub(super) messages: Vec<Message<'a>>,
}

/// A message as it is compared.
#[derive(Debug)]
pub(super) struct Message<'a> {
    pub(super) part: &'a Part,
    pub(super) value: Value,
    key: String,
}

impl<'a> Message<'a> {
    fn new(part: &'a Part, normal: &Normal) -> Self {
        let value = match part.kind {
            PartKind::Other => Value::from(part.text.as_str()),
            _ => normal.value(&part.value),
        };
        Self { part, key: value.to_string(), value }
    }

    /// Messages that are compared where no two are the same: of one sender, kind and method.
    fn kind(&self) -> (Role, u8, &str) {
        let kind = match self.part.kind {
            PartKind::Request { .. } => 0,
            PartKind::Notification { .. } => 1,
            PartKind::Response { .. } => 2,
            PartKind::Other => 3,
        };
        (self.part.from, kind, self.part.method().unwrap_or_default())
    }

    /// The same, and asking for the same.
    fn subject(&self) -> (Role, u8, &str, &str) {
        let (from, kind, method) = self.kind();
        (from, kind, method, self.part.subject().unwrap_or_default())
    }
}

impl Group<'_> {
    pub(super) fn request(&self) -> Option<&Message<'_>> {
        self.request.as_ref()
    }

    /// The request in short.
    pub(super) fn label(&self) -> Option<String> {
        self.request.as_ref().map(|request| request.part.label())
    }

    /// The message that it is compared by.
    fn head(&self) -> Option<&Message<'_>> {
        self.request.as_ref().or(self.messages.first())
    }
}

/// The groups of recordings. `by_stream` says whether messages belong to the HTTP request that they came with: on a pipe they do
/// not.
pub(super) fn groups<'a>(
    conversations: &'a [RecordedConversation],
    normal: &Normal,
    by_stream: bool,
) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for conversation in conversations {
        let mut known: HashMap<usize, usize> = HashMap::new();
        for (at, part) in conversation.parts.iter().enumerate() {
            let message = Message::new(part, normal);
            let owner = part.owner.filter(|_| by_stream || !part.is_owned_by_stream);
            let owner = owner.and_then(|owner| known.get(&owner).copied());
            if let Some(group) = owner.and_then(|owner| groups.get_mut(owner)) {
                group.messages.push(message);
            } else if part.from == Role::Client && part.is_request() {
                let is_http = conversation.transport == "http";
                let status = conversation.response_head(part).filter(|_| is_http).map(|(status, _)| status);
                known.insert(at, groups.len());
                groups.push(Group { request: Some(message), status, messages: Vec::new() });
            } else {
                groups.push(Group { request: None, status: None, messages: vec![message] });
            }
        }
    }
    groups
}

/// Groups of two recordings beside each other: those of the same request, then those of the same method.
pub(super) fn paired<'a, 'b>(
    before: &'a [Group<'b>],
    after: &'a [Group<'b>],
) -> Vec<(Option<&'a Group<'b>>, Option<&'a Group<'b>>)> {
    let before: Vec<_> = before.iter().filter_map(|group| Some((group, group.head()?))).collect();
    let after: Vec<_> = after.iter().filter_map(|group| Some((group, group.head()?))).collect();
    // A request and a message without one are not the same.
    pairs(&before, &after, |(group, head)| (group.request.is_some(), *head))
        .into_iter()
        .map(|(old, new)| (old.map(|(group, _)| *group), new.map(|(group, _)| *group)))
        .collect()
}

/// Messages of two groups beside each other.
pub(super) fn paired_messages<'a, 'b>(
    before: &'a [Message<'b>],
    after: &'a [Message<'b>],
) -> Vec<(Option<&'a Message<'b>>, Option<&'a Message<'b>>)> {
    pairs(before, after, |message| (false, message))
}

/// Pairs what is the same, in its order; then what asks for the same; then what is of one kind. What is left stands alone.
fn pairs<'a, T>(
    before: &'a [T],
    after: &'a [T],
    message: impl Fn(&'a T) -> (bool, &'a Message<'a>),
) -> Vec<(Option<&'a T>, Option<&'a T>)> {
    let mut found: Vec<Option<usize>> = vec![None; before.len()];
    let mut is_taken = vec![false; after.len()];
    let keys: [&dyn Fn(&'a T) -> String; 3] = [
        &|it| {
            let (is_request, message) = message(it);
            format!("{is_request} {:?} {}", message.kind(), message.key)
        },
        &|it| {
            let (is_request, message) = message(it);
            format!("{is_request} {:?}", message.subject())
        },
        &|it| {
            let (is_request, message) = message(it);
            format!("{is_request} {:?}", message.kind())
        },
    ];
    for key in keys {
        let mut waiting: HashMap<String, std::collections::VecDeque<usize>> = HashMap::new();
        for (at, item) in after.iter().enumerate().filter(|(at, _)| is_taken.get(*at) == Some(&false)) {
            waiting.entry(key(item)).or_default().push_back(at);
        }
        for (slot, item) in found.iter_mut().zip(before).filter(|(slot, _)| slot.is_none()) {
            *slot = waiting.get_mut(&key(item)).and_then(std::collections::VecDeque::pop_front);
            if let Some(taken) = slot.and_then(|at| is_taken.get_mut(at)) {
                *taken = true;
            }
        }
    }
    let matched = before.iter().zip(&found).map(|(item, at)| (Some(item), at.and_then(|at| after.get(at))));
    let alone = after.iter().zip(&is_taken).filter(|(_, taken)| !**taken).map(|(item, _)| (None, Some(item)));
    matched.chain(alone).collect()
}
