//! The fields of a form.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Number, Value};

use crate::model::base::number::plain_number;
use crate::model::base::union;
use crate::model::{JsonObject, MultiChoiceSchema, SingleChoiceSchema};

/// One field, told apart by `type` and, for strings, by whether choices are given.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldSchema {
    /// Free text.
    Text(StringSchema),
    /// A number.
    Number(NumberSchema),
    /// Yes or no.
    Boolean(BooleanSchema),
    /// One of several choices.
    SingleChoice(SingleChoiceSchema),
    /// Any of several choices.
    MultiChoice(MultiChoiceSchema),
}

impl Serialize for FieldSchema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Typed<'a, T> {
            #[serde(rename = "type")]
            kind: &'static str,
            #[serde(flatten)]
            schema: &'a T,
        }

        match self {
            Self::Text(schema) => Typed { kind: "string", schema }.serialize(serializer),
            Self::Number(schema) => schema.serialize(serializer),
            Self::Boolean(schema) => Typed { kind: "boolean", schema }.serialize(serializer),
            Self::SingleChoice(schema) => Typed { kind: "string", schema }.serialize(serializer),
            Self::MultiChoice(schema) => Typed { kind: "array", schema }.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for FieldSchema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut field = JsonObject::deserialize(deserializer)?;
        let kind: String = union::take_string(&mut field, "type", "form field")?;
        let offers = |key: &str| field.get(key).is_some_and(|value| !value.is_null());
        match kind.as_str() {
            "string" if offers("enum") || offers("oneOf") => {
                SingleChoiceSchema::from_members(field).map(Self::SingleChoice)
            }
            "string" => union::rest(field, "string field").map(Self::Text),
            "number" | "integer" => {
                field.insert("type".to_owned(), Value::String(kind));
                union::rest(field, "number field").map(Self::Number)
            }
            "boolean" => union::rest(field, "boolean field").map(Self::Boolean),
            "array" => MultiChoiceSchema::from_members(field).map(Self::MultiChoice),
            _ => Err(de::Error::custom(format_args!(
                "`type` of form field must be `string`, `number`, `integer`, `boolean` or `array`, not {kind:?}"
            ))),
        }
    }
}

from_variants! {
    FieldSchema {
        StringSchema => Text,
        NumberSchema => Number,
        BooleanSchema => Boolean,
        SingleChoiceSchema => SingleChoice,
        MultiChoiceSchema => MultiChoice,
    }
}

json_object! {
    /// Free text.
    pub struct StringSchema {
        /// The label.
        title?: String,
        /// The explanation.
        description?: String,
        /// The least number of characters.
        min_length?: u64,
        /// The greatest number of characters.
        max_length?: u64,
        /// The notation.
        format?: StringFormat,
        /// What is filled in at first.
        default?: String,
        /// Any text.
        fn new,
    }
}

open_enum! {
    /// The notation of a text.
    pub enum StringFormat {
        /// A mail address.
        Email = "email",
        /// A URI.
        Uri = "uri",
        /// A day.
        Date = "date",
        /// A moment.
        DateTime = "date-time",
    }
}

json_object! {
    /// A number.
    pub struct NumberSchema {
        /// Whether fractions are allowed.
        #[serde(rename = "type")]
        kind: NumberKind,
        /// The label.
        title?: String,
        /// The explanation.
        description?: String,
        /// The least value.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        minimum: Option<Number>,
        /// The greatest value.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        maximum: Option<Number>,
        /// What is filled in at first.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        default: Option<Number>,
    }
}

impl NumberSchema {
    /// Any number.
    pub fn number() -> Self {
        Self::default()
    }

    /// A whole number.
    pub fn integer() -> Self {
        Self { kind: NumberKind::Integer, ..Self::default() }
    }

    /// Sets the least value.
    #[must_use]
    pub fn minimum(mut self, minimum: impl Into<f64>) -> Self {
        self.minimum = plain_number(minimum.into());
        self
    }

    /// Sets the greatest value.
    #[must_use]
    pub fn maximum(mut self, maximum: impl Into<f64>) -> Self {
        self.maximum = plain_number(maximum.into());
        self
    }

    /// Sets what is filled in at first.
    #[must_use]
    pub fn with_default(mut self, default: impl Into<f64>) -> Self {
        self.default = plain_number(default.into());
        self
    }
}

/// Whether fractions are allowed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NumberKind {
    /// Any number.
    #[default]
    Number,
    /// Whole numbers.
    Integer,
}

json_object! {
    /// Yes or no.
    pub struct BooleanSchema {
        /// The label.
        title?: String,
        /// The explanation.
        description?: String,
        /// What is chosen at first.
        default?: bool,
        /// A field for yes or no.
        fn new,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn form_fields_are_told_apart_by_type_and_choices() {
        let read = |json: Value| serde_json::from_value::<FieldSchema>(json).map_err(|e| e.to_string());
        for json in [
            json!({"type": "string", "pattern": "a+", "format": "hostname"}),
            json!({"type": "integer", "minimum": 0, "maximum": 1.5, "default": 1}),
            json!({"type": "boolean", "default": true, "x": {}}),
            json!({"type": "string", "enum": ["a", "b"], "default": "a"}),
            json!({"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"], "x": 1}),
            json!({"type": "string", "oneOf": [{"const": "a", "title": "A", "x": 1}]}),
            json!({"type": "array", "items": {"type": "string", "enum": ["a"], "x": 1}, "minItems": 1}),
            json!({"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}, "default": ["a"]}),
        ] {
            let field = read(json.clone()).unwrap();
            assert_eq!(serde_json::to_value(&field).unwrap(), json);
        }
        for (wrong, name) in [
            (json!({}), "`type`"),
            (json!({"type": "object"}), "`type`"),
            (json!({"type": "array"}), "`items`"),
            (json!({"type": "array", "items": {"type": "string"}}), "`enum`"),
            (json!({"type": "string", "enum": [1]}), "`enum`"),
            (json!({"type": "string", "enum": ["a"], "oneOf": []}), "`oneOf`"),
        ] {
            let error = read(wrong).unwrap_err();
            assert!(error.contains(name), "{error}");
        }
    }
}
