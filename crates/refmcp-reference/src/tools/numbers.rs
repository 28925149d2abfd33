//! Structured results.

use refmcp_server::model::plain_number;
use refmcp_server::{Call, CallError, Json, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Number;

pub(super) fn tools() -> Vec<Tool> {
    vec![Tool::new("sum", "Adds two numbers", sum).title("Sum").read_only().idempotent().inline()]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Sum {
    /// The first number
    a: f64,
    /// The second number
    b: f64,
}

#[derive(Serialize, JsonSchema)]
struct Total {
    /// The sum of the two numbers
    total: Number,
}

async fn sum(_: Call, Sum { a, b }: Sum) -> Result<Json<Total>, CallError> {
    let total = plain_number(a + b)
        .ok_or_else(|| CallError::new("the sum is too large to be written as a number"))?;
    Ok(Json(Total { total }))
}
