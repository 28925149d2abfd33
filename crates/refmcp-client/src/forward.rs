//! Requests that are made on behalf of another client: their parameters are sent as they were written, without what belongs
//! to that client's connection.

use refmcp_proto::jsonrpc::members_in_order;
use refmcp_proto::model::{JsonObject, keys};
use refmcp_proto::revision::Method;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::client::Client;
use crate::request::Request;

/// Members of the parameters that each connection has its own of.
const OWN_MEMBERS: [&str; 3] = ["_meta", "requestState", "inputResponses"];
/// The same of `tasks/update`, whose input responses are not those of a round.
const OWN_MEMBERS_OF_UPDATE: [&str; 1] = ["_meta"];
/// Members of `_meta` that describe the client, or that each connection has its own of.
const OWN_META: [&str; 5] = [
    keys::PROTOCOL_VERSION,
    keys::CLIENT_CAPABILITIES,
    keys::CLIENT_INFO,
    keys::LOG_LEVEL,
    keys::PROGRESS_TOKEN,
];

impl Client {
    /// Makes a request on behalf of another client, and gives the text of the result. The parameters are the text of a JSON
    /// object. They are sent as they are, except for what belongs to the other connection: answers to input requests, and the
    /// members of `_meta` that describe the client. Nothing else is checked.
    pub fn forward(&self, method: &str, params: &str) -> Request<Box<RawValue>> {
        let known = Method::known(method);
        let own: &[&str] = match known {
            Some(Method::UpdateTask) => &OWN_MEMBERS_OF_UPDATE,
            _ => &OWN_MEMBERS,
        };
        let (params, meta) = match forwarded_params(params, own) {
            Ok(forwarded) => forwarded,
            Err(error) => return Request::invalid(self, method, error.to_string()),
        };
        let request = Request::of_text(self, method, &params).meta(meta).unchecked().task_as_result();
        let Some(member) = known.as_ref().and_then(Method::name_member) else { return request };
        let Ok(members) = serde_json::from_str::<JsonObject>(&params) else { return request };
        let request = match members.get(member) {
            Some(Value::String(name)) => request.named(name),
            _ => request,
        };
        match members.get("arguments") {
            Some(Value::Object(arguments)) if known == Some(Method::CallTool) => {
                request.arguments(arguments.clone())
            }
            _ => request,
        }
    }
}

/// The text of the parameters for the server, and the members of their `_meta`.
fn forwarded_params(text: &str, own: &[&str]) -> serde_json::Result<(String, JsonObject)> {
    // A name can be written with escapes.
    if !text.contains("\\u") && !own.iter().any(|name| text.contains(name)) {
        return Ok((text.to_owned(), JsonObject::new()));
    }
    let mut json = serde_json::Deserializer::from_str(text);
    let members: Vec<(String, &RawValue)> = members_in_order(&mut json)?;
    json.end()?;
    let (mut params, mut meta) = (String::from("{"), JsonObject::new());
    for (name, value) in members {
        if name == "_meta" {
            meta = serde_json::from_str(value.get())?;
            meta.retain(|key, _| !OWN_META.contains(&key.as_str()));
        } else if !own.contains(&name.as_str()) {
            params += if params.len() > 1 { "," } else { "" };
            params += &serde_json::to_string(&name)?;
            params += ":";
            params += value.get();
        }
    }
    params.push('}');
    Ok((params, meta))
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
            let (params, kept) = forwarded_params(text, &OWN_MEMBERS).unwrap();
            assert_eq!((params.as_str(), Value::Object(kept)), (forwarded, meta));
        }
        assert!(forwarded_params(r#"{"_meta":1}"#, &OWN_MEMBERS).is_err());
        let update = r#"{"taskId":"t","inputResponses":{}}"#;
        assert_eq!(forwarded_params(update, &OWN_MEMBERS_OF_UPDATE).unwrap().0, update);
    }
}
