//! Tools that return text.

use refmcp_server::{Call, CallError, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

/// The most that one result carries.
const MAX_RESULT_BYTES: u64 = 4 << 20;

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::new("echo", "Returns the text it was given", echo)
            .title("Echo")
            .read_only()
            .idempotent()
            .inline(),
        Tool::new("big_result", "Returns as much text as was asked for", big_result)
            .title("Big result")
            .read_only()
            .idempotent(),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Echo {
    /// The text to return
    message: String,
}

async fn echo(_: Call, Echo { message }: Echo) -> Result<String, CallError> {
    Ok(message)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BigResult {
    /// How many bytes of text
    #[schemars(range(max = MAX_RESULT_BYTES))]
    bytes: u64,
}

/// Plain ASCII without anything that JSON has to escape, so that as many bytes travel as were asked for.
async fn big_result(_: Call, BigResult { bytes }: BigResult) -> Result<String, CallError> {
    const LINE: &str = "0123456789 abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ ";
    let bytes = usize::try_from(bytes.min(MAX_RESULT_BYTES))?;
    let mut text = LINE.repeat(bytes / LINE.len() + 1);
    text.truncate(bytes);
    Ok(text)
}
