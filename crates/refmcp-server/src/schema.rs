//! JSON Schemas of types.

use std::sync::Arc;

use refmcp_proto::model::JsonObject;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::Value;

/// The schema of a type, as an object of its own.
pub(crate) fn schema_of<T: JsonSchema>() -> Arc<JsonObject> {
    let settings = SchemaSettings::draft2020_12()
        .with(|settings| settings.meta_schema = None)
        .with_transform(RecursiveTransform(forget_number_formats));
    let schema = SchemaGenerator::new(settings).into_root_schema_for::<T>();
    match schema.to_value() {
        Value::Object(mut object) => {
            // The name of a Rust type says nothing to a client.
            object.remove("title");
            object.remove("description");
            Arc::new(object)
        }
        // A type that takes anything has the schema `true`.
        _ => Arc::new(JsonObject::new()),
    }
}

/// Names of Rust's number types are no formats that others know, and some validators complain about them.
fn forget_number_formats(schema: &mut schemars::Schema) {
    let is_number = schema.get("type").is_some_and(|kind| {
        let names = |name: &Value| matches!(name.as_str(), Some("integer" | "number"));
        names(kind) || kind.as_array().is_some_and(|kinds| kinds.iter().any(names))
    });
    if is_number {
        schema.remove("format");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_no_format() {
        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "only its schema is of interest")]
        struct Numbers {
            count: u64,
            most: Option<usize>,
            shares: Vec<f64>,
        }

        let schema = serde_json::to_string(&*schema_of::<Numbers>()).unwrap();
        assert!(
            schema.contains("integer") && schema.contains("number") && !schema.contains("format"),
            "{schema}"
        );
    }
}
