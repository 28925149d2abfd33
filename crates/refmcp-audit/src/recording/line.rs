//! A line of a recording: every member that an event can have, in the order in which they are written.

use std::borrow::Cow;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use refmcp_proto::revision::Revision;
use refmcp_transport::observer::{Direction, Side};
use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::event::{Event, EventKind, Header};

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct RecordLine<'a> {
    at: u64,
    #[serde(borrow)]
    event: Cow<'a, str>,
    connection: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<Revision>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    side: Option<Side>,
    #[serde(skip_serializing_if = "Option::is_none", borrow)]
    transport: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none", borrow)]
    peer: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none", borrow)]
    event_id: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    direction: Option<Direction>,
    #[serde(skip_serializing_if = "Option::is_none", borrow)]
    message: Option<Cow<'a, RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none", borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none", borrow)]
    target: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    headers: Option<Headers>,
    #[serde(skip_serializing_if = "Option::is_none", borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none", borrow)]
    rule: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none", borrow)]
    what: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none", borrow)]
    expected: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none", borrow)]
    reason: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none", borrow)]
    why: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none", borrow)]
    text: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none", borrow)]
    base64: Option<Cow<'a, str>>,
}

/// Header fields as the members of an object, in their order; one that comes twice is written twice.
#[derive(Debug, Clone, Default)]
struct Headers(Vec<Header>);

impl RecordLine<'_> {
    pub(super) fn to_text(&self) -> String {
        // Strings, numbers and JSON texts do not fail to be written.
        let mut text = serde_json::to_string(self).unwrap_or_default();
        text.push('\n');
        text
    }

    pub(super) fn into_event(self) -> Result<Event, String> {
        let Self { at, connection, revision, stream, .. } = self;
        Ok(Event { at, connection, revision, stream, kind: self.into_kind()? })
    }

    fn into_kind(self) -> Result<EventKind, String> {
        let event = self.event.clone();
        let missing = |member: &str| format!("an event `{event}` needs the member `{member}`");
        let direction = self.direction.ok_or_else(|| missing("direction"));
        let why = self.why.map(Cow::into_owned).unwrap_or_default();
        let bytes = match (self.text, self.base64) {
            (Some(text), _) => text.into_owned().into_bytes(),
            (None, Some(encoded)) => STANDARD.decode(&*encoded).map_err(|error| error.to_string())?,
            (None, None) => Vec::new(),
        };
        let headers = self.headers.unwrap_or_default().0;
        let owned = |member: Option<Cow<'_, str>>| member.map(Cow::into_owned);
        Ok(match &*event {
            "opened" => EventKind::Opened {
                side: self.side.ok_or_else(|| missing("side"))?,
                transport: owned(self.transport).ok_or_else(|| missing("transport"))?,
                peer: owned(self.peer).unwrap_or_default(),
            },
            "message" => EventKind::Message {
                direction: direction?,
                text: self.message.ok_or_else(|| missing("message"))?.get().to_owned(),
                event_id: owned(self.event_id),
            },
            "invalid" => EventKind::Invalid { direction: direction?, bytes, why },
            "head" => match (self.method, self.target, self.status) {
                (Some(method), Some(target), _) => EventKind::Request {
                    direction: direction?,
                    method: method.into_owned(),
                    target: target.into_owned(),
                    headers,
                },
                (_, _, Some(status)) => EventKind::Response { direction: direction?, status, headers },
                _ => return Err(missing("method` and `target`, or `status")),
            },
            "sse" => EventKind::Sse {
                direction: direction?,
                name: owned(self.name),
                event_id: owned(self.event_id),
                retry: self.retry,
                data: String::from_utf8_lossy(&bytes).into_owned(),
            },
            "ended" => EventKind::Ended { direction: direction? },
            "refused" => EventKind::Refused {
                status: self.status.ok_or_else(|| missing("status"))?,
                reason: owned(self.reason).unwrap_or_default(),
                why,
            },
            "failed" => EventKind::Failed { why },
            "finding" => EventKind::Finding {
                rule: owned(self.rule).ok_or_else(|| missing("rule"))?,
                what: owned(self.what).unwrap_or_default(),
                expected: owned(self.expected).unwrap_or_default(),
            },
            "stderr" => EventKind::Stderr { bytes },
            "closed" => EventKind::Closed { why },
            unknown => return Err(format!("`{unknown}` is no kind of event")),
        })
    }
}

impl<'a> From<&'a Event> for RecordLine<'a> {
    fn from(event: &'a Event) -> Self {
        let mut line = RecordLine {
            at: event.at,
            connection: event.connection,
            revision: event.revision,
            stream: event.stream,
            ..RecordLine::default()
        };
        let text = |text: &'a str| Some(Cow::Borrowed(text));
        line.event = match &event.kind {
            EventKind::Opened { side, transport, peer } => {
                line.side = Some(*side);
                (line.transport, line.peer) = (text(transport), text(peer));
                "opened"
            }
            EventKind::Message { direction, text: message, event_id } => {
                line.direction = Some(*direction);
                line.message = RawValue::from_string(message.clone()).ok().map(Cow::Owned);
                line.event_id = event_id.as_deref().and_then(text);
                "message"
            }
            EventKind::Invalid { direction, bytes, why } => {
                line.direction = Some(*direction);
                (line.text, line.base64) = text_or_base64(bytes);
                line.why = text(why);
                "invalid"
            }
            EventKind::Request { direction, method, target, headers } => {
                line.direction = Some(*direction);
                (line.method, line.target) = (text(method), text(target));
                line.headers = Some(Headers(headers.clone()));
                "head"
            }
            EventKind::Response { direction, status, headers } => {
                line.direction = Some(*direction);
                (line.status, line.headers) = (Some(*status), Some(Headers(headers.clone())));
                "head"
            }
            EventKind::Sse { direction, name, event_id, retry, data } => {
                line.direction = Some(*direction);
                line.name = name.as_deref().and_then(text);
                line.event_id = event_id.as_deref().and_then(text);
                line.retry = *retry;
                line.text = Some(&**data).filter(|data| !data.is_empty()).and_then(text);
                "sse"
            }
            EventKind::Ended { direction } => {
                line.direction = Some(*direction);
                "ended"
            }
            EventKind::Refused { status, reason, why } => {
                (line.status, line.reason, line.why) = (Some(*status), text(reason), text(why));
                "refused"
            }
            EventKind::Failed { why } => {
                line.why = text(why);
                "failed"
            }
            EventKind::Finding { rule, what, expected } => {
                (line.rule, line.what, line.expected) = (text(rule), text(what), text(expected));
                "finding"
            }
            EventKind::Stderr { bytes } => {
                (line.text, line.base64) = text_or_base64(bytes);
                "stderr"
            }
            EventKind::Closed { why } => {
                line.why = text(why);
                "closed"
            }
        }
        .into();
        line
    }
}

/// Bytes as text, or in base64 where they are none.
fn text_or_base64(bytes: &[u8]) -> (Option<Cow<'_, str>>, Option<Cow<'_, str>>) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (Some(text.into()), None),
        Err(_) => (None, Some(STANDARD.encode(bytes).into())),
    }
}

impl Serialize for Headers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Headers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Headers;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of header fields")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Headers, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Headers(fields))
            }
        }
        deserializer.deserialize_map(Fields)
    }
}
