//! Numbers that are written without a needless fraction: `50`, not `50.0`.

use serde::{Serialize, Serializer};
use serde_json::Number;

/// Whole numbers up to here are exact in both `f64` and `i64`.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// A JSON number for a float; whole values become integers. `None` for NaN and infinities, which JSON lacks.
pub fn plain_number(value: f64) -> Option<Number> {
    if value.fract() == 0.0 && value.abs() <= EXACT {
        // Exact by the test above, so the cast loses nothing.
        return Some(Number::from(value as i64));
    }
    Number::from_f64(value)
}

/// Like [`plain_number`], with 0 for what JSON cannot say.
pub(in crate::model) fn number_or_zero(value: f64) -> Number {
    plain_number(value).unwrap_or_else(|| Number::from(0))
}

/// For `#[serde(serialize_with)]` on optional floats.
pub(in crate::model) fn write_plain<S: Serializer>(
    value: &Option<f64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    value.and_then(plain_number).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_have_no_fraction() {
        let text = |value| plain_number(value).map(|number| number.to_string());
        assert_eq!(text(50.0).as_deref(), Some("50"));
        assert_eq!(text(-3.0).as_deref(), Some("-3"));
        assert_eq!(text(0.5).as_deref(), Some("0.5"));
        assert_eq!(text(1e300).as_deref(), Some("1e+300"));
        assert_eq!(text(f64::NAN), None);
    }
}
