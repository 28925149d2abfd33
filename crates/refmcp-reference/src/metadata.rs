//! `metadata/get`, which is beyond the protocol: the server about itself.

use refmcp_server::model::JsonObject;
use refmcp_server::revision::lower;
use refmcp_server::{Call, CallError, ServerBuilder};
use serde_json::{Value, json};

pub(crate) fn add(builder: ServerBuilder, endpoints: Vec<String>) -> ServerBuilder {
    let get = move |call: Call, _: JsonObject| {
        let endpoints = endpoints.clone();
        async move { get(&call, &endpoints) }
    };
    builder.extension("metadata", "refmcp/metadata", JsonObject::new()).method("metadata/get", get)
}

fn get(call: &Call, endpoints: &[String]) -> Result<JsonObject, CallError> {
    let config = call.server().config();
    let revisions: Vec<&str> = config.revisions.iter().map(|revision| revision.as_str()).collect();
    let metadata = json!({
        "name": config.server_info.name,
        "version": config.server_info.version,
        "capabilities": lower::capabilities(call.peer().rules(), &config.capabilities),
        "authRequired": false,
        "revisions": revisions,
        "endpoints": endpoints,
    });
    match metadata {
        Value::Object(metadata) => Ok(metadata),
        _ => Ok(JsonObject::new()),
    }
}
