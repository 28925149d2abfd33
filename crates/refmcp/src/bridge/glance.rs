//! What a message says of itself: as much as is needed to pass it on, and where the parts stand that a bridge may have
//! to exchange. Both sides check messages by themselves, so whatever can be passed on is.

use std::borrow::Cow;

use refmcp_proto::jsonrpc::{RequestId, RpcError, without_place};
use refmcp_proto::model::keys;
use refmcp_proto::revision::Method;
use serde::Deserialize;
use serde_json::value::RawValue;

/// A message, its parts unread.
#[derive(Debug, Clone, Default)]
pub(super) struct Message<'a> {
    /// All of it.
    pub(super) text: &'a str,
    pub(super) id: Option<Named<'a>>,
    /// Requests and notifications have one, answers have none.
    pub(super) method: Option<Cow<'a, str>>,
    pub(super) params: Params<'a>,
    pub(super) meta: Meta<'a>,
    /// The text of the result of an answer.
    pub(super) result: Option<&'a str>,
    /// The text of the error of an answer.
    pub(super) error: Option<&'a str>,
    /// What headers repeated of a request's arguments, where it came with headers.
    pub(super) repeated: Option<Vec<(String, String)>>,
}

/// Something by which messages refer to a request, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Named<'a> {
    pub(super) id: RequestId,
    pub(super) text: &'a str,
}

impl<'a> Named<'a> {
    fn read(text: &'a RawValue) -> Option<Self> {
        let text = text.get();
        // Numbers that are no integers are not valid ids, but they come back as they were sent.
        let odd = || {
            text.starts_with(|c: char| c == '-' || c.is_ascii_digit()).then(|| RequestId::Digits(text.into()))
        };
        RequestId::from_json(text).or_else(odd).map(|id| Self { id, text })
    }
}

/// The members of parameters that matter.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Params<'a> {
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    uri: Option<&'a RawValue>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    progress_token: Option<&'a RawValue>,
    #[serde(borrow)]
    request_id: Option<&'a RawValue>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<&'a RawValue>,
}

/// The members of `_meta` that matter.
#[derive(Debug, Clone, Default)]
pub(super) struct Meta<'a> {
    /// The revision of a request that stands for itself.
    pub(super) revision: Option<Cow<'a, str>>,
    /// What progress of a request is to refer to.
    pub(super) token: Option<Named<'a>>,
    /// The request that asked to be told.
    pub(super) subscription: Option<Named<'a>>,
    /// Whether a request wants to hear the log.
    pub(super) logs: bool,
}

impl<'a> Params<'a> {
    /// The name of what a request is about, as headers repeat it.
    pub(super) fn name(&self, method: &str) -> Option<String> {
        let name = match Method::known(method)?.name_member()? {
            "uri" => self.uri,
            _ => self.name,
        };
        serde_json::from_str(name?.get()).ok()
    }

    pub(super) fn arguments(&self) -> Option<&'a str> {
        self.arguments.map(RawValue::get)
    }

    /// The token that a notification of progress refers to.
    pub(super) fn token(&self) -> Option<Named<'a>> {
        self.progress_token.and_then(Named::read)
    }

    /// The request that is called off.
    pub(super) fn request(&self) -> Option<Named<'a>> {
        self.request_id.and_then(Named::read)
    }
}

impl<'a> Meta<'a> {
    fn read(text: Option<&'a RawValue>) -> Self {
        let members: Option<std::collections::HashMap<Cow<'a, str>, &'a RawValue>> =
            text.and_then(|text| serde_json::from_str(text.get()).ok());
        let member = |key: &str| members.as_ref().and_then(|members| members.get(key).copied());
        Self {
            revision: member(keys::PROTOCOL_VERSION).and_then(|text| serde_json::from_str(text.get()).ok()),
            token: member(keys::PROGRESS_TOKEN).and_then(Named::read),
            subscription: member(keys::SUBSCRIPTION_ID).and_then(Named::read),
            logs: member(keys::LOG_LEVEL).is_some(),
        }
    }
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<Params<'a>>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// A request or notification whose parameters are no object.
#[derive(Deserialize)]
struct Odd<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Cow<'a, str>,
}

impl<'a> From<Odd<'a>> for Envelope<'a> {
    fn from(odd: Odd<'a>) -> Self {
        Self { id: odd.id, method: Some(odd.method), params: None, result: None, error: None }
    }
}

#[derive(Deserialize)]
struct OfResult<'a> {
    #[serde(borrow, rename = "_meta")]
    meta: Option<&'a RawValue>,
}

impl<'a> Message<'a> {
    fn read_one(text: &'a str) -> Result<Self, RpcError> {
        let refuse = |fault: &serde_json::Error| {
            let why = without_place(fault);
            if fault.is_data() {
                RpcError::invalid_request(why)
            } else {
                RpcError::parse_error(format!("not JSON: {why}"))
            }
        };
        let envelope = serde_json::from_str(text).or_else(|fault: serde_json::Error| {
            let odd = serde_json::from_str(text).map(|odd: Odd<'a>| odd.into());
            odd.map_err(|_| refuse(&fault))
        })?;
        let Envelope { id, method, params, result, error }: Envelope<'a> = envelope;
        if method.is_none() && id.is_none() && error.is_none() {
            return Err(RpcError::invalid_request("neither a method nor an answer"));
        }
        let named = id.and_then(Named::read);
        if id.is_some() && named.is_none() {
            return Err(RpcError::invalid_request("the id is neither a string nor a number"));
        }
        let params = params.unwrap_or_default();
        let meta = match result {
            None => Meta::read(params.meta),
            // Results are long, and only those of listeners say something that matters here.
            Some(result) if result.get().contains(keys::SUBSCRIPTION_ID) => {
                let result: Option<OfResult<'a>> = serde_json::from_str(result.get()).ok();
                Meta::read(result.and_then(|result| result.meta))
            }
            Some(_) => Meta::default(),
        };
        let (result, error) = (result.map(RawValue::get), error.map(RawValue::get));
        Ok(Self { text, id: named, method, params, meta, result, error, repeated: None })
    }

    /// Whether it wants an answer.
    pub(super) fn asks(&self) -> Option<&RequestId> {
        self.id.as_ref().filter(|_| self.method.is_some()).map(|named| &named.id)
    }

    pub(super) fn is_answer(&self) -> bool {
        self.method.is_none()
    }

    /// Whether it is a request or a notification of this method.
    pub(super) fn is(&self, method: &str) -> bool {
        self.method.as_deref() == Some(method)
    }
}

/// Reads what came in one piece: a message, or several in an array, which are passed on one by one.
///
/// # Errors
/// The error to answer the sender with.
pub(super) fn read(bytes: &[u8]) -> Result<Vec<Message<'_>>, RpcError> {
    let text = std::str::from_utf8(bytes)
        .map_err(|fault| RpcError::parse_error(format!("not UTF-8 at byte {}", fault.valid_up_to())))?;
    let text = text.trim_ascii();
    if !text.starts_with('[') {
        return Message::read_one(text).map(|message| vec![message]);
    }
    let parts: Vec<&RawValue> = serde_json::from_str(text)
        .map_err(|fault| RpcError::parse_error(format!("not JSON: {}", without_place(&fault))))?;
    if parts.is_empty() {
        return Err(RpcError::invalid_request("an empty batch"));
    }
    parts.into_iter().map(|part| Message::read_one(part.get())).collect()
}

/// A text in which parts of it are exchanged for others; every other byte stays.
pub(super) fn exchanged(text: &str, mut parts: Vec<(&str, String)>) -> String {
    parts.sort_by_key(|(part, _)| part.as_ptr());
    let mut out = String::with_capacity(text.len() + 32);
    let mut done = 0;
    for (part, with) in parts {
        let start = (part.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize);
        // A part of another text has no place in this one.
        let Some(before) = text.get(done..start) else { continue };
        out.push_str(before);
        out.push_str(&with);
        done = start + part.len();
    }
    out.push_str(text.get(done..).unwrap_or_default());
    out
}

/// The same message without line breaks, which JSON has only between its parts.
pub(super) fn in_one_line(text: &str) -> Cow<'_, str> {
    if text.contains(['\n', '\r']) { text.replace(['\n', '\r'], " ").into() } else { text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Message<'_> {
        read(text.as_bytes()).unwrap().remove(0)
    }

    #[test]
    fn messages_are_told_apart() {
        let call = one(
            r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"t","arguments":{"x":1}}}"#,
        );
        assert_eq!(call.asks(), Some(&RequestId::from("a")));
        assert_eq!(call.params.name("tools/call").as_deref(), Some("t"));
        assert_eq!(call.params.arguments(), Some(r#"{"x":1}"#));
        let told = one(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#);
        assert!(told.asks().is_none() && !told.is_answer());
        assert_eq!(told.params.request().unwrap().id, RequestId::from(7));
        let answer = one(
            r#"{"jsonrpc":"2.0","id":1.5,"result":{"_meta":{"io.modelcontextprotocol/subscriptionId":3}}}"#,
        );
        assert!(answer.is_answer());
        assert_eq!(answer.id.unwrap().text, "1.5");
        assert_eq!(answer.meta.subscription.unwrap().text, "3");
        let odd = one(r#"{"jsonrpc":"2.0","id":1,"method":"x","params":[7]}"#);
        assert!(odd.asks().is_some() && odd.is("x"));
        assert!(one(r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":""}}"#).is_answer());
        assert_eq!(read(br#"[{"method":"a"},{"method":"b"}]"#).unwrap().len(), 2);
    }

    #[test]
    fn what_is_no_message_is_refused() {
        for text in [
            "",
            "nonsense",
            "{}",
            "[]",
            "7",
            "[7]",
            r#"{"id":{},"method":"x"}"#,
            r#"{"method":7}"#,
            "{\"method\":\"x\"",
        ] {
            assert!(read(text.as_bytes()).is_err(), "{text}");
        }
        assert!(read(b"\xFF").is_err());
    }

    #[test]
    fn only_what_is_exchanged_changes() {
        let text = r#"{ "id" : 7, "method":"x", "params": {"_meta":{"progressToken":"7"}} }"#;
        let message = one(text);
        let parts = vec![
            (message.meta.token.unwrap().text, "12".to_owned()),
            (message.id.unwrap().text, "\"a\"".to_owned()),
        ];
        let changed = exchanged(text, parts);
        assert_eq!(changed, r#"{ "id" : "a", "method":"x", "params": {"_meta":{"progressToken":12}} }"#);
        assert_eq!(exchanged(text, vec![("elsewhere", "x".to_owned())]), text);
    }

    #[test]
    fn line_breaks_between_parts_go() {
        assert_eq!(in_one_line("{\r\n\"a\":\"\\n\"\n}"), "{  \"a\":\"\\n\" }");
    }
}
