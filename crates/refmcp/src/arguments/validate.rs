//! A last look at the arguments as a whole, with the complete schema.

use refmcp_proto::model::JsonObject;
use refmcp_schema::Schema;
use serde_json::Value;

use super::mistake::Mistake;

/// What does not fit the schema. A schema that cannot be applied, or speaks of things outside of itself, is left to
/// the server: it is its own.
pub(super) fn fault(schema: &JsonObject, arguments: &JsonObject) -> Option<Mistake> {
    let schema = Schema::compile(schema).ok()?;
    let fault = schema.check(&Value::Object(arguments.clone())).err()?;
    Some(Mistake::new("the arguments", fault))
}
