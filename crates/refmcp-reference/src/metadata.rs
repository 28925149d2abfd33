//! `metadata/get`, which is beyond the protocol: the server about itself.

use refmcp_server::model::JsonObject;
use refmcp_server::revision::lower;
use refmcp_server::{Call, CallError, ServerBuilder};
use serde_json::{Value, json};

use crate::SCOPES;

pub(crate) fn add(builder: ServerBuilder, endpoints: Vec<String>, auth_required: bool) -> ServerBuilder {
    let get = move |call: Call, _: JsonObject| {
        let endpoints = endpoints.clone();
        async move { get(&call, &endpoints, auth_required) }
    };
    builder.extension("metadata", "refmcp/metadata", JsonObject::new()).method("metadata/get", get)
}

fn get(call: &Call, endpoints: &[String], auth_required: bool) -> Result<JsonObject, CallError> {
    let config = call.server().config();
    let revisions: Vec<&str> = config.revisions.iter().map(|revision| revision.as_str()).collect();
    let mut metadata = json!({
        "name": config.server_info.name,
        "version": config.server_info.version,
        "capabilities": lower::capabilities(call.peer().rules(), &config.capabilities),
        "authRequired": auth_required,
        "revisions": revisions,
        "endpoints": endpoints,
    });
    if auth_required {
        metadata["scopes"] = json!(SCOPES);
    }
    match metadata {
        Value::Object(metadata) => Ok(metadata),
        _ => Ok(JsonObject::new()),
    }
}
