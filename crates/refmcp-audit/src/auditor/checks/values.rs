//! Reading the JSON values of messages.

use std::hash::{DefaultHasher, Hash, Hasher};

use refmcp_proto::jsonrpc::excerpt;
use refmcp_proto::revision::{Revision, Rules};
use serde_json::Value;

use crate::auditor::conversation::Request;

/// What a party did, and what it should do instead.
pub(super) type Violation = (String, &'static str);

/// A violation where something is broken.
pub(super) fn violation_if(is_broken: bool, what: &str, expected: &'static str) -> Option<Violation> {
    is_broken.then(|| (what.to_owned(), expected))
}

/// A violation where something does not hold.
pub(super) fn violation_unless(holds: bool, what: &str, expected: &'static str) -> Option<Violation> {
    (!holds).then(|| (what.to_owned(), expected))
}

/// A member that is a string.
pub(super) fn text<'a>(value: &'a Value, member: &str) -> Option<&'a str> {
    value.get(member).and_then(Value::as_str)
}

/// The items of a member; none where it is no list.
pub(super) fn items<'a>(value: &'a Value, member: &str) -> &'a [Value] {
    value.get(member).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The type of a result; one without is complete.
pub(super) fn result_type(result: &Value) -> &str {
    text(result, "resultType").unwrap_or("complete")
}

/// The capabilities that a request declares by itself.
pub(super) fn request_capabilities(params: &Value) -> Option<&Value> {
    params.get("_meta")?.get("io.modelcontextprotocol/clientCapabilities").filter(|it| it.is_object())
}

/// What holds in the revision of a request.
pub(super) fn rules_of(request: &Request) -> Option<&'static Rules> {
    request.revision.map(Revision::rules)
}

/// A number that is the same for the same value.
pub(super) fn fingerprint(value: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.to_string().hash(&mut hasher);
    hasher.finish()
}

/// Whether this is base64 with its padding, in the usual alphabet.
pub(super) fn is_base64(text: &str) -> bool {
    let data = text.trim_end_matches('=');
    text.len().is_multiple_of(4)
        && text.len() - data.len() <= 2
        && data.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
}

/// The bytes that base64 stands for.
pub(super) fn base64_length(text: &str) -> usize {
    text.trim_end_matches('=').len() * 3 / 4
}

/// Whether two values mean the same: numbers are compared as numbers.
pub(super) fn is_same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left == right || left.as_f64() == right.as_f64(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| is_same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(name, value)| right.get(name).is_some_and(|other| is_same(value, other)))
        }
        _ => left == right,
    }
}

/// What is wrong with a content block of a tool's result or a prompt.
pub(super) fn block_violation(block: &Value, rules: &Rules) -> Option<Violation> {
    let expected_type = "send blocks of the types that the revision has";
    match text(block, "type") {
        None => Some(("a content block without a type".to_owned(), expected_type)),
        Some("text") => violation_unless(
            text(block, "text").is_some(),
            "a text block without text",
            "put the text into text",
        ),
        Some("audio") if !rules.audio => {
            Some(("an audio block, which the revision does not have".to_owned(), expected_type))
        }
        Some("resource_link") if !rules.resource_links => {
            Some(("a resource_link, which the revision does not have".to_owned(), expected_type))
        }
        Some(kind @ ("image" | "audio")) => violation_unless(
            text(block, "data").is_some_and(is_base64) && text(block, "mimeType").is_some(),
            &format!("an {kind} block without base64 data or a mimeType"),
            "encode the bytes as base64 in data and name their mimeType",
        ),
        Some("resource") => {
            contents_violation(block.get("resource").unwrap_or(&Value::Null), "an embedded resource")
        }
        Some("resource_link") => violation_unless(
            text(block, "uri").is_some() && text(block, "name").is_some(),
            "a resource_link without a uri or a name",
            "link by uri and name",
        ),
        Some(kind) => Some((
            format!("a content block of the type \"{}\", which the revision does not have", excerpt(kind)),
            expected_type,
        )),
    }
}

/// What is wrong with the contents of a resource.
pub(super) fn contents_violation(contents: &Value, subject: &str) -> Option<Violation> {
    if text(contents, "uri").is_none() {
        return Some((format!("{subject} without a uri"), "name the resource by its uri"));
    }
    match (text(contents, "text"), text(contents, "blob")) {
        (None, None) => {
            Some((format!("{subject} with neither text nor blob"), "send its text, or its bytes as blob"))
        }
        (_, Some(blob)) => violation_unless(
            is_base64(blob),
            &format!("{subject} whose blob is no base64"),
            "encode bytes as base64 with padding",
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn base64_has_its_alphabet_and_padding() {
        for text in ["", "aGk=", "aA==", "aGkh", "+/+/"] {
            assert!(is_base64(text), "{text}");
        }
        for text in ["aGk", "a===", "a-_=", "aG\n=", "a=Gk"] {
            assert!(!is_base64(text), "{text}");
        }
        assert_eq!([base64_length("aGk="), base64_length("aA=="), base64_length("aGkh")], [2, 1, 3]);
    }

    #[test]
    fn numbers_are_the_same_however_they_are_written() {
        assert!(is_same(&json!({"a": [1, {"b": 2}]}), &json!({"a": [1.0, {"b": 2}]})));
        assert!(!is_same(&json!({"a": 1}), &json!({"a": 1, "b": 2})));
    }
}
