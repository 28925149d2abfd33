//! Times in tokens: seconds since 1970, which may have a fraction (`NumericDate`, RFC 7519 section 2).

use std::fmt;

use serde::de::{Deserializer, Error, Visitor};

use crate::Seconds;

/// Reads a time; its fraction is left out.
pub(crate) fn required<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Seconds, D::Error> {
    deserializer.deserialize_any(NumericDate)
}

/// Reads a time that may be missing.
pub(crate) fn optional<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Seconds>, D::Error> {
    struct Optional;

    impl<'de> Visitor<'de> for Optional {
        type Value = Option<Seconds>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            NumericDate.expecting(f)
        }

        fn visit_none<E: Error>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
            required(deserializer).map(Some)
        }
    }
    deserializer.deserialize_option(Optional)
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
