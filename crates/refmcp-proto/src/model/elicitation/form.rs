//! Forms: the flat schema of what a user is asked to fill in.

use serde::de;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::jsonrpc::members_in_order;
use crate::model::{Extra, FieldSchema, JsonObject};

/// A form: fields in the order they are shown.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(tag = "type", rename = "object")]
pub struct FormSchema {
    /// The dialect, `$schema` on the wire.
    #[serde(rename = "$schema", skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// The fields by name; a list, because a JSON map here would sort them.
    #[serde(serialize_with = "write_in_order")]
    pub properties: Vec<(String, FieldSchema)>,
    /// The fields that must be filled in.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub required: Vec<String>,
    /// Members this model does not name.
    #[serde(flatten)]
    pub extra: Extra,
}

impl FormSchema {
    /// A form without fields.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a field that must be filled in.
    #[must_use]
    pub fn required(mut self, name: impl Into<String>, field: impl Into<FieldSchema>) -> Self {
        let name = name.into();
        if !self.required.contains(&name) {
            self.required.push(name.clone());
        }
        self.optional(name, field)
    }

    /// Adds a field that may be left out; a field of the same name is replaced.
    #[must_use]
    pub fn optional(mut self, name: impl Into<String>, field: impl Into<FieldSchema>) -> Self {
        let (name, field) = (name.into(), field.into());
        // A name twice in one JSON object would leave it to the reader which one counts.
        match self.properties.iter_mut().find(|(other, _)| *other == name) {
            Some((_, old)) => *old = field,
            None => self.properties.push((name, field)),
        }
        self
    }

    /// The content of the form before it is filled in: the defaults of the fields that have one.
    pub fn defaults(&self) -> JsonObject {
        let default = |field: &FieldSchema| match field {
            FieldSchema::Text(schema) => schema.default.clone().map(Value::from),
            FieldSchema::Number(schema) => schema.default.clone().map(Value::from),
            FieldSchema::Boolean(schema) => schema.default.map(Value::from),
            FieldSchema::SingleChoice(schema) => schema.default.clone().map(Value::from),
            FieldSchema::MultiChoice(schema) => schema.default.clone().map(Value::from),
        };
        self.properties
            .iter()
            .filter_map(|(name, field)| default(field).map(|value| (name.clone(), value)))
            .collect()
    }

    /// The field of that name.
    pub fn field(&self, name: &str) -> Option<&FieldSchema> {
        self.properties.iter().find_map(|(other, field)| (other == name).then_some(field))
    }
}

impl<'de> Deserialize<'de> for FormSchema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Frame {
            #[serde(rename = "$schema")]
            schema: Option<String>,
            #[serde(rename = "type")]
            kind: String,
            #[serde(deserialize_with = "members_in_order")]
            properties: Vec<(String, FieldSchema)>,
            required: Option<Vec<String>>,
            #[serde(flatten)]
            extra: Extra,
        }

        let Frame { schema, kind, properties, required, extra } = Frame::deserialize(deserializer)?;
        if kind != "object" {
            return Err(de::Error::custom(format_args!("`type` of a form must be `object`, not {kind:?}")));
        }
        Ok(Self { schema, properties, required: required.unwrap_or_default(), extra })
    }
}

/// Writes a list of members as an object.
fn write_in_order<S: Serializer>(fields: &[(String, FieldSchema)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(fields.iter().map(|(name, field)| (name, field)))
}
