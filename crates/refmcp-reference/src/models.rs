//! Models, which are beyond the protocol: the selected one is the hint in the sampling requests that the server makes.

use parking_lot::Mutex;
use refmcp_server::model::JsonObject;
use refmcp_server::{Call, CallError, RpcError, ServerBuilder, excerpt};
use serde_json::{Value, json};

/// What a model is known by.
struct Model {
    name: &'static str,
    description: &'static str,
    context_length: u64,
}

const MODELS: [Model; 3] = [
    Model { name: "gpt-4", description: "OpenAI GPT-4", context_length: 8192 },
    Model { name: "gpt-3.5-turbo", description: "OpenAI GPT-3.5 Turbo", context_length: 4096 },
    Model { name: "claude-v2", description: "Anthropic Claude v2.0", context_length: 100_000 },
];

/// Where a request without a session names its model.
const META: &str = "refmcp/model";

/// The model that a session has selected.
struct Selected(Mutex<&'static str>);

impl Default for Selected {
    fn default() -> Self {
        Self(Mutex::new(MODELS[0].name))
    }
}

pub(crate) fn add(builder: ServerBuilder) -> ServerBuilder {
    builder
        .extension("models", "refmcp/models", JsonObject::new())
        .method("models/list", list)
        .session_method("models/select", select)
}

/// The model that holds for this call.
pub(crate) fn active(call: &Call) -> Result<&'static str, RpcError> {
    if let Some(session) = call.session() {
        return Ok(*session.value::<Selected>().0.lock());
    }
    match call.meta(META) {
        None => Ok(MODELS[0].name),
        Some(Value::String(name)) => known(&name),
        Some(_) => Err(RpcError::invalid_params(format!("_meta: {META} is not a string"))),
    }
}

fn known(name: &str) -> Result<&'static str, RpcError> {
    let model = MODELS.iter().find(|model| model.name == name);
    model.map(|model| model.name).ok_or_else(|| {
        let names = MODELS.map(|model| model.name);
        RpcError::invalid_params(format!("unknown model: {}", excerpt(name)))
            .with_data(json!({ "requested": name, "known": names }))
    })
}

async fn list(call: Call, _: JsonObject) -> Result<JsonObject, CallError> {
    let active = active(&call)?;
    let models = MODELS.iter().map(|Model { name, description, context_length }| {
        json!({
            "name": name,
            "description": description,
            "contextLength": context_length,
            "active": *name == active,
        })
    });
    let mut result = JsonObject::new();
    result.insert("models".to_owned(), models.collect());
    result.insert("active".to_owned(), active.into());
    Ok(result)
}

async fn select(call: Call, params: JsonObject) -> Result<JsonObject, CallError> {
    let name = params.get("name").and_then(Value::as_str);
    let name =
        known(name.ok_or_else(|| RpcError::invalid_params("params: name is missing or not a string"))?)?;
    if let Some(session) = call.session() {
        *session.value::<Selected>().0.lock() = name;
    }
    let mut result = JsonObject::new();
    result.insert("active".to_owned(), name.into());
    Ok(result)
}
