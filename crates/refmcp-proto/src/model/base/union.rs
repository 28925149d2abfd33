//! Helpers for reading unions: take the discriminator out of an object, then read the rest as one type.

use serde::de::{DeserializeOwned, Error};
use serde_json::Value;

use crate::model::JsonObject;

/// Takes the string member `key` out of the object; the error names both the member and what was read.
pub(in crate::model) fn take_string<E: Error>(
    object: &mut JsonObject,
    key: &str,
    what: &str,
) -> Result<String, E> {
    match object.remove(key) {
        Some(Value::String(text)) => Ok(text),
        Some(_) => Err(E::custom(format_args!("`{key}` of {what} must be a string"))),
        None => Err(E::custom(format_args!("{what} has no `{key}`"))),
    }
}

/// Reads what is left of the object as `T`.
pub(in crate::model) fn rest<T: DeserializeOwned, E: Error>(object: JsonObject, what: &str) -> Result<T, E> {
    serde_json::from_value(Value::Object(object)).map_err(|error| E::custom(format_args!("{what}: {error}")))
}
