//! Resources that change on demand.

use refmcp_server::{Call, CallError, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::WRITE_SCOPE;
use crate::resources::builtin;

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::new(
            "touch_resource",
            "Changes the content of a built-in text resource; subscribers are told",
            touch_resource,
        )
        .title("Touch a resource")
        .annotate(|hints| hints.read_only(false).destructive(false).idempotent(false))
        .scopes([WRITE_SCOPE])
        .inline(),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Touch {
    /// The resource, such as file:///resources/notes.txt
    uri: String,
}

async fn touch_resource(call: Call, Touch { uri }: Touch) -> Result<String, CallError> {
    builtin::touch(call.server(), &uri)?;
    Ok(format!("{uri} has changed"))
}
