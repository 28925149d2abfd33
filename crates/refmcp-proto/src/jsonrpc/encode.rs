//! Messages to bytes, appended to a buffer.

use serde::Serialize;
use serde_json::Error;

use super::{RequestId, RpcError};

/// The id of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseId<'a> {
    /// The request's id.
    Id(&'a RequestId),
    /// The request could not be read: `"id": null`.
    Null,
    /// The request could not be read: no id at all.
    Absent,
}

/// Appends a request.
pub fn request(
    out: &mut Vec<u8>,
    id: &RequestId,
    method: &str,
    params: &impl Serialize,
) -> Result<(), Error> {
    member(out, r#"{"jsonrpc":"2.0","id":"#, id)?;
    member(out, r#","method":"#, method)?;
    last_member(out, r#","params":"#, params)
}

/// Appends a notification.
pub fn notification(out: &mut Vec<u8>, method: &str, params: Option<&impl Serialize>) -> Result<(), Error> {
    match params {
        Some(params) => {
            member(out, r#"{"jsonrpc":"2.0","method":"#, method)?;
            last_member(out, r#","params":"#, params)
        }
        None => last_member(out, r#"{"jsonrpc":"2.0","method":"#, method),
    }
}

/// Appends a result.
pub fn result(out: &mut Vec<u8>, id: &RequestId, result: &impl Serialize) -> Result<(), Error> {
    member(out, r#"{"jsonrpc":"2.0","id":"#, id)?;
    last_member(out, r#","result":"#, result)
}

/// Appends an error.
pub fn error(out: &mut Vec<u8>, to: ResponseId<'_>, error: &RpcError) -> Result<(), Error> {
    match to {
        ResponseId::Id(id) => member(out, r#"{"jsonrpc":"2.0","id":"#, id)?,
        ResponseId::Null => out.extend_from_slice(br#"{"jsonrpc":"2.0","id":null"#),
        ResponseId::Absent => out.extend_from_slice(br#"{"jsonrpc":"2.0""#),
    }
    last_member(out, r#","error":"#, error)
}

/// Appends a member after the text that precedes it.
fn member(out: &mut Vec<u8>, before: &str, value: &(impl Serialize + ?Sized)) -> Result<(), Error> {
    out.extend_from_slice(before.as_bytes());
    serde_json::to_writer(out, value)
}

fn last_member(out: &mut Vec<u8>, before: &str, value: &(impl Serialize + ?Sized)) -> Result<(), Error> {
    member(out, before, value)?;
    out.push(b'}');
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text(write: impl FnOnce(&mut Vec<u8>) -> Result<(), Error>) -> String {
        let mut out = Vec::new();
        write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn writes_each_kind() {
        let id = RequestId::from(7);
        assert_eq!(
            text(|out| request(out, &id, "ping", &json!({}))),
            r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{}}"#
        );
        assert_eq!(
            text(|out| notification(out, "notifications/x", None::<&()>)),
            r#"{"jsonrpc":"2.0","method":"notifications/x"}"#
        );
        assert_eq!(
            text(|out| result(out, &id, &json!({"a":1}))),
            r#"{"jsonrpc":"2.0","id":7,"result":{"a":1}}"#
        );
        assert_eq!(
            text(|out| error(out, ResponseId::Absent, &RpcError::parse_error("no"))),
            r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"no"}}"#
        );
    }
}
