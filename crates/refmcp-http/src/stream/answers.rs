//! Errors in place of answers that cannot be sent.

use refmcp_proto::jsonrpc::encode::{self, ResponseId};
use refmcp_proto::jsonrpc::{RequestId, RpcError};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The id of a message.
pub(super) fn id_of(json: &[u8]) -> Option<RequestId> {
    #[derive(Deserialize)]
    struct WithId<'a> {
        #[serde(borrow)]
        id: Option<&'a RawValue>,
    }
    RequestId::from_json(serde_json::from_slice::<WithId<'_>>(json).ok()?.id?.get())
}

/// This error instead of an answer, or instead of each answer to a batch.
pub(super) fn errors_for(json: &[u8], error: &RpcError) -> Vec<u8> {
    let write = |out: &mut Vec<u8>, id: Option<RequestId>| {
        let written = encode::error(out, id.as_ref().map_or(ResponseId::Null, ResponseId::Id), error);
        debug_assert!(written.is_ok(), "{error:?}");
    };
    let mut out = Vec::new();
    match serde_json::from_slice::<Vec<&RawValue>>(json) {
        Ok(answers) => {
            out.push(b'[');
            for (place, answer) in answers.into_iter().enumerate() {
                if place > 0 {
                    out.push(b',');
                }
                write(&mut out, id_of(answer.get().as_bytes()));
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
    fn every_answer_that_does_not_fit_is_an_error() {
        let error = RpcError::internal("no room");
        let one = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no room"}}"#;
        for (answer, errors) in [
            (r#"{"jsonrpc":"2.0","id":1,"result":{"id":3}}"#, one.to_owned()),
            (r#"[{"id":1,"result":{}},{"id":"b","result":{}}]"#, {
                format!("[{one},{}]", one.replace(r#""id":1"#, r#""id":"b""#))
            }),
            (r#"{"error":{}}"#, one.replace(r#""id":1"#, r#""id":null"#)),
        ] {
            assert_eq!(String::from_utf8(errors_for(answer.as_bytes(), &error)).unwrap(), errors);
        }
    }
}
