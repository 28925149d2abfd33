//! Checking what a user filled in against the form; the error always names the field.

use serde_json::{Number, Value};

use super::format;
use crate::model::{
    FieldSchema, FormSchema, JsonObject, MultiChoiceSchema, NumberKind, NumberSchema, SingleChoiceSchema,
    StringSchema,
};

impl FormSchema {
    /// Checks an answer: every required field is there, every field is known and fits its schema.
    ///
    /// # Errors
    ///
    /// A sentence that names the first field that is wrong and says why.
    pub fn check(&self, content: &JsonObject) -> Result<(), String> {
        for name in &self.required {
            if !content.contains_key(name) {
                return Err(format!("field {name:?} is required"));
            }
        }
        for (name, value) in content {
            let field = self.field(name).ok_or_else(|| format!("field {name:?} is not in the form"))?;
            field.check(value).map_err(|problem| format!("field {name:?} {problem}"))?;
        }
        Ok(())
    }
}

impl FieldSchema {
    /// Checks one value; the error is the rest of a sentence that starts with the field.
    fn check(&self, value: &Value) -> Result<(), String> {
        match self {
            Self::Text(schema) => schema.check(value),
            Self::Number(schema) => schema.check(value),
            Self::Boolean(_) => value.as_bool().map(|_| ()).ok_or_else(|| "must be true or false".to_owned()),
            Self::SingleChoice(schema) => schema.check(value),
            Self::MultiChoice(schema) => schema.check(value),
        }
    }
}

impl StringSchema {
    fn check(&self, value: &Value) -> Result<(), String> {
        let text = value.as_str().ok_or("must be a string")?;
        // Characters, not bytes, as JSON Schema counts.
        let length = text.chars().count() as u64;
        if let Some(least) = self.min_length.filter(|least| length < *least) {
            return Err(format!("must have at least {least} characters"));
        }
        if let Some(most) = self.max_length.filter(|most| length > *most) {
            return Err(format!("must have at most {most} characters"));
        }
        match &self.format {
            Some(format) if !format::matches(format, text) => Err(format!("is no {}", format.as_str())),
            _ => Ok(()),
        }
    }
}

impl NumberSchema {
    fn check(&self, value: &Value) -> Result<(), String> {
        let number = value.as_f64().ok_or("must be a number")?;
        // JSON Schema takes 1.0 for an integer too.
        if self.kind == NumberKind::Integer && number.fract() != 0.0 {
            return Err("must be a whole number".to_owned());
        }
        let limit = |limit: &Option<Number>| limit.as_ref().and_then(Number::as_f64);
        if let Some(least) = limit(&self.minimum).filter(|least| number < *least) {
            return Err(format!("must be at least {least}"));
        }
        if let Some(most) = limit(&self.maximum).filter(|most| number > *most) {
            return Err(format!("must be at most {most}"));
        }
        Ok(())
    }
}

impl SingleChoiceSchema {
    fn check(&self, value: &Value) -> Result<(), String> {
        let choice = value.as_str().ok_or("must be a string")?;
        if self.choices.contains(choice) { Ok(()) } else { Err(format!("cannot be {choice:?}")) }
    }
}

impl MultiChoiceSchema {
    fn check(&self, value: &Value) -> Result<(), String> {
        let items = value.as_array().ok_or("must be a list of strings")?;
        let count = items.len() as u64;
        if let Some(least) = self.min_items.filter(|least| count < *least) {
            return Err(format!("must have at least {least} items"));
        }
        if let Some(most) = self.max_items.filter(|most| count > *most) {
            return Err(format!("must have at most {most} items"));
        }
        for item in items {
            let choice = item.as_str().ok_or("must be a list of strings")?;
            if !self.choices.contains(choice) {
                return Err(format!("cannot contain {choice:?}"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::{BooleanSchema, Choices, StringFormat};

    fn form() -> FormSchema {
        FormSchema::new()
            .required("name", StringSchema::new().min_length(2u64).max_length(4u64))
            .optional("mail", StringSchema::new().format(StringFormat::Email))
            .optional("age", NumberSchema::integer().minimum(18).maximum(99))
            .optional("ratio", NumberSchema::number().maximum(0.5))
            .optional("ok", BooleanSchema::new())
            .optional("one", SingleChoiceSchema::new(["a", "b"].into_iter().collect()))
            .optional(
                "many",
                MultiChoiceSchema::new(Choices::titled([("a", "A"), ("b", "B")]))
                    .min_items(1u64)
                    .max_items(2u64),
            )
    }

    fn check(answer: &Value) -> Result<(), String> {
        form().check(answer.as_object().unwrap())
    }

    #[test]
    fn valid_form_content_passes() {
        check(&json!({"name": "Ada"})).unwrap();
        check(&json!({"name": "äöüß", "mail": "a@b", "age": 18.0, "ratio": 0.5, "ok": false})).unwrap();
        check(&json!({"name": "Ada", "one": "b", "many": ["a", "b"]})).unwrap();
    }

    #[test]
    fn form_errors_name_the_field() {
        for (answer, field) in [
            (json!({}), "name"),
            (json!({"name": null}), "name"),
            (json!({"name": "A"}), "name"),
            (json!({"name": "Augusta"}), "name"),
            (json!({"name": "Ada", "mail": "no address"}), "mail"),
            (json!({"name": "Ada", "age": "18"}), "age"),
            (json!({"name": "Ada", "age": 18.5}), "age"),
            (json!({"name": "Ada", "age": 17}), "age"),
            (json!({"name": "Ada", "age": 100}), "age"),
            (json!({"name": "Ada", "ratio": 0.6}), "ratio"),
            (json!({"name": "Ada", "ok": "yes"}), "ok"),
            (json!({"name": "Ada", "one": "c"}), "one"),
            (json!({"name": "Ada", "many": []}), "many"),
            (json!({"name": "Ada", "many": ["a", "a", "b"]}), "many"),
            (json!({"name": "Ada", "many": ["c"]}), "many"),
            (json!({"name": "Ada", "many": "a"}), "many"),
            (json!({"name": "Ada", "many": [1]}), "many"),
            (json!({"name": "Ada", "else": 1}), "else"),
        ] {
            let error = check(&answer).unwrap_err();
            assert!(error.starts_with(&format!("field {field:?} ")), "{answer}: {error}");
        }
    }

    #[test]
    fn fields_are_sent_in_the_order_they_were_written() {
        let text = serde_json::to_string(&form()).unwrap();
        let at = |name: &str| text.find(&format!("{name:?}:")).unwrap();
        assert!(["name", "mail", "age", "ratio", "ok", "one", "many"].map(at).is_sorted(), "{text}");
        let back: FormSchema = serde_json::from_str(&text).unwrap();
        assert_eq!(back, form());
    }
}
