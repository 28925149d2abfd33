//! `metadata/get`, which is beyond the protocol: the server about itself.

use refmcp_server::model::JsonObject;
use refmcp_server::revision::downgrade;
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
        "capabilities": downgrade::capabilities(call.peer().rules(), &config.capabilities),
        "authRequired": auth_required,
        "revisions": revisions,
        "endpoints": seen_from(call.connection().origin.as_deref(), endpoints),
    });
    if auth_required {
        metadata["scopes"] = json!(SCOPES);
    }
    match metadata {
        Value::Object(metadata) => Ok(metadata),
        _ => Ok(JsonObject::new()),
    }
}

/// The endpoints by the scheme and the host that the client used, where that is known and is another host.
fn seen_from(origin: Option<&str>, endpoints: &[String]) -> Vec<String> {
    let renamed = |endpoint: &String| {
        let (scheme, host) = origin?.split_once("://")?;
        let (own_scheme, rest) = endpoint.split_once("://")?;
        let (own_host, path) = rest.split_once('/')?;
        let is_socket = own_scheme.starts_with("ws");
        let scheme = match scheme {
            "https" if is_socket => "wss",
            "http" if is_socket => "ws",
            other => other,
        };
        (own_host != host).then(|| format!("{scheme}://{host}/{path}"))
    };
    endpoints.iter().map(|endpoint| renamed(endpoint).unwrap_or_else(|| endpoint.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_named_as_the_client_knows_them() {
        let own = ["http://127.0.0.1:3000/mcp".to_owned(), "ws://127.0.0.1:3000/mcp/ws".to_owned()];
        assert_eq!(seen_from(None, &own), own);
        let public = ["https://mcp.example/mcp", "wss://mcp.example/mcp/ws"];
        assert_eq!(seen_from(Some("https://mcp.example"), &own), public);
        // What was configured for this host holds, whatever stands between.
        let public = public.map(str::to_owned);
        assert_eq!(seen_from(Some("http://mcp.example"), &public), public);
    }
}
