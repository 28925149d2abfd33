//! Tools that are about their schemas.

use refmcp_server::model::JsonObject;
use refmcp_server::{Call, CallError, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::new(
            "json_schema_2020_12_tool",
            "Has an input schema with many keywords of JSON Schema 2020-12",
            contact,
        )
        .title("JSON Schema 2020-12")
        // The file is JSON, which a test of the tools reads.
        .input_schema(serde_json::from_str(include_str!("contact_schema.json")).unwrap_or_default())
        .read_only()
        .inline(),
        Tool::new("test_x_mcp_header", "Has an argument that clients repeat in a header", in_header)
            .title("Argument in a header")
            .read_only()
            .inline(),
    ]
}

async fn contact(_: Call, arguments: JsonObject) -> Result<String, CallError> {
    Ok(format!("Arguments: {}", Value::Object(arguments)))
}

#[derive(Deserialize, JsonSchema)]
struct InHeader {
    /// The region; clients repeat it in the header Mcp-Param-Region
    #[schemars(extend("x-mcp-header" = "Region"))]
    region: Option<String>,
}

async fn in_header(_: Call, InHeader { region }: InHeader) -> Result<String, CallError> {
    Ok(match region {
        Some(region) => format!("Region: {region}"),
        None => "No region".to_owned(),
    })
}
