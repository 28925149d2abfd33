//! A result beside the server's own text of it, so that JSON output keeps its members in their order.

use serde::de::{Deserialize, DeserializeOwned, Deserializer, Error as _};
use serde_json::value::RawValue;

/// A result, and how the server has written it.
#[derive(Debug)]
pub(crate) struct Written<T> {
    pub(crate) item: T,
    pub(crate) text: Box<RawValue>,
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Written<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let item = serde_json::from_str(text.get()).map_err(D::Error::custom)?;
        Ok(Self { item, text })
    }
}
