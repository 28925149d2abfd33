//! Times in tokens: seconds since 1970, which may have a fraction (`NumericDate`, RFC 7519 section 2).

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};

use crate::Seconds;

/// Reads a time; its fraction is left out.
pub(crate) fn required<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Seconds, D::Error> {
    deserializer.deserialize_any(NumericDate)
}

/// Reads a time that may be missing.
pub(crate) fn optional<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Seconds>, D::Error> {
    #[derive(Deserialize)]
    struct Date(#[serde(deserialize_with = "required")] Seconds);

    Ok(Option::<Date>::deserialize(deserializer)?.map(|date| date.0))
}

struct NumericDate;

impl Visitor<'_> for NumericDate {
    type Value = Seconds;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number of seconds since 1970")
    }

    fn visit_u64<E: Error>(self, seconds: u64) -> Result<Seconds, E> {
        Ok(seconds)
    }

    fn visit_f64<E: Error>(self, seconds: f64) -> Result<Seconds, E> {
        // Beyond this, a number of this type is no exact number of seconds any more.
        const LATEST: f64 = 9_007_199_254_740_992.0;
        if (0.0..LATEST).contains(&seconds) {
            // In these bounds only the fraction is lost.
            Ok(seconds as Seconds)
        } else {
            Err(E::custom("a time that cannot be"))
        }
    }
}
