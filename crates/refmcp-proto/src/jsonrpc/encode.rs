//! Messages to bytes, appended to whatever is being collected.

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
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    serde_json::to_writer(&mut *out, id)?;
    out.extend_from_slice(b",\"method\":");
    serde_json::to_writer(&mut *out, method)?;
    out.extend_from_slice(b",\"params\":");
    serde_json::to_writer(&mut *out, params)?;
    out.push(b'}');
    Ok(())
}

/// Appends a notification.
pub fn notification(out: &mut Vec<u8>, method: &str, params: Option<&impl Serialize>) -> Result<(), Error> {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"method\":");
    serde_json::to_writer(&mut *out, method)?;
    if let Some(params) = params {
        out.extend_from_slice(b",\"params\":");
        serde_json::to_writer(&mut *out, params)?;
    }
    out.push(b'}');
    Ok(())
}

/// Appends a result.
pub fn result(out: &mut Vec<u8>, id: &RequestId, result: &impl Serialize) -> Result<(), Error> {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    serde_json::to_writer(&mut *out, id)?;
    out.extend_from_slice(b",\"result\":");
    serde_json::to_writer(&mut *out, result)?;
    out.push(b'}');
    Ok(())
}

/// Appends an error.
pub fn error(out: &mut Vec<u8>, to: ResponseId<'_>, error: &RpcError) -> Result<(), Error> {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\"");
    match to {
        ResponseId::Id(id) => {
            out.extend_from_slice(b",\"id\":");
            serde_json::to_writer(&mut *out, id)?;
        }
        ResponseId::Null => out.extend_from_slice(b",\"id\":null"),
        ResponseId::Absent => {}
    }
    out.extend_from_slice(b",\"error\":");
    serde_json::to_writer(&mut *out, error)?;
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
