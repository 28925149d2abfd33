//! The parameters of a call as they are forwarded: as they were sent, without what belongs to the connection in front.

use std::fmt;

use refmcp_proto::jsonrpc::RpcError;
use refmcp_proto::model::{JsonObject, keys};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Members of the parameters that the gateway itself answers for.
const OWN_MEMBERS: [&str; 3] = ["_meta", "requestState", "inputResponses"];
/// Members of `_meta` that describe the client, or that the connection to the server has its own of.
const OWN_META: [&str; 5] = [
    keys::PROTOCOL_VERSION,
    keys::CLIENT_CAPABILITIES,
    keys::CLIENT_INFO,
    keys::LOG_LEVEL,
    keys::PROGRESS_TOKEN,
];

/// The members of an object in their order, each as it was written.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        input.deserialize_map(InOrder)
    }
}

/// The text of the parameters for the server, and the members of their `_meta`.
pub(super) fn forwarded_params(text: &str) -> Result<(Box<RawValue>, JsonObject), RpcError> {
    let unreadable = |fault: serde_json::Error| RpcError::invalid_params(fault.to_string());
    // A name can be written with escapes.
    if !text.contains("\\u") && !OWN_MEMBERS.iter().any(|name| text.contains(name)) {
        return Ok((RawValue::from_string(text.to_owned()).map_err(unreadable)?, JsonObject::new()));
    }
    let Members(members) = serde_json::from_str(text).map_err(unreadable)?;
    let (mut params, mut meta) = (String::from("{"), JsonObject::new());
    for (name, value) in members {
        if name == "_meta" {
            meta = serde_json::from_str(value.get()).map_err(unreadable)?;
            meta.retain(|key, _| !OWN_META.contains(&key.as_str()));
        } else if !OWN_MEMBERS.contains(&name.as_str()) {
            params += if params.len() > 1 { "," } else { "" };
            params += &serde_json::to_string(&name).map_err(unreadable)?;
            params += ":";
            params += value.get();
        }
    }
    params.push('}');
    Ok((RawValue::from_string(params).map_err(unreadable)?, meta))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parameters_keep_their_order_and_their_text() {
        for (text, forwarded, meta) in [
            (r#"{"z":1.50,"a":{"y":1,"x":[]}}"#, r#"{"z":1.50,"a":{"y":1,"x":[]}}"#, json!({})),
            (
                r#"{"z":10000000000000000000000,"_meta":{"progressToken":7,"mine":[1]},"a\n":"_meta"}"#,
                r#"{"z":10000000000000000000000,"a\n":"_meta"}"#,
                json!({ "mine": [1] }),
            ),
            (r#"{"\u005fmeta":{"mine":1},"a":1}"#, r#"{"a":1}"#, json!({ "mine": 1 })),
            (r#"{"requestState":"s","inputResponses":{},"name":"n"}"#, r#"{"name":"n"}"#, json!({})),
        ] {
            let (params, kept) = forwarded_params(text).unwrap();
            assert_eq!((params.get(), serde_json::Value::Object(kept)), (forwarded, meta));
        }
        assert!(forwarded_params(r#"{"_meta":1}"#).is_err());
    }
}
