//! Errors in place of responses that cannot be sent.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::encode::{self, ResponseId};
use super::{RequestId, RpcError};

/// The id of a message.
pub fn id_of(json: &[u8]) -> Option<RequestId> {
    #[derive(Deserialize)]
    struct WithId<'a> {
        #[serde(borrow)]
        id: Option<&'a RawValue>,
    }
    RequestId::from_json(serde_json::from_slice::<WithId<'_>>(json).ok()?.id?.get())
}

/// This error instead of a response, or instead of each response to a batch.
pub fn error_instead(json: &[u8], error: &RpcError) -> Vec<u8> {
    let write = |out: &mut Vec<u8>, id: Option<RequestId>| {
        let written = encode::error(out, id.as_ref().map_or(ResponseId::Null, ResponseId::Id), error);
        debug_assert!(written.is_ok(), "{error:?}");
    };
    let mut out = Vec::new();
    match serde_json::from_slice::<Vec<&RawValue>>(json) {
        Ok(responses) => {
            out.push(b'[');
            for (place, response) in responses.into_iter().enumerate() {
                if place > 0 {
                    out.push(b',');
                }
                write(&mut out, id_of(response.get().as_bytes()));
            }
            out.push(b']');
        }
        Err(_) => write(&mut out, id_of(json)),
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_response_that_cannot_be_sent_is_an_error() {
        let error = RpcError::internal("no room");
        let one = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no room"}}"#;
        for (response, errors) in [
            (r#"{"jsonrpc":"2.0","id":1,"result":{"id":3}}"#, one.to_owned()),
            (r#"[{"id":1,"result":{}},{"id":"b","result":{}}]"#, {
                format!("[{one},{}]", one.replace(r#""id":1"#, r#""id":"b""#))
            }),
            (r#"{"error":{}}"#, one.replace(r#""id":1"#, r#""id":null"#)),
        ] {
            assert_eq!(String::from_utf8(error_instead(response.as_bytes(), &error)).unwrap(), errors);
        }
    }
}
