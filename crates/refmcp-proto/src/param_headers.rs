//! Tool parameters mirrored in `Mcp-Param-*` headers: those that the schema marks with `x-mcp-header`.

use serde_json::Value;

use crate::model::JsonObject;

const KEYWORD: &str = "x-mcp-header";

/// A parameter that a header mirrors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParamHeader {
    /// The header's name without `Mcp-Param-`, as the schema gives it.
    pub name: String,
    /// The path to the parameter: names of members, outermost first.
    pub path: Vec<String>,
}

impl ParamHeader {
    /// The header's value for these arguments; `None` when the parameter is absent.
    pub fn value(&self, arguments: &JsonObject) -> Option<String> {
        let (first, rest) = self.path.split_first()?;
        let argument = rest.iter().try_fold(arguments.get(first)?, |value, name| value.get(name))?;
        match argument {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(truth) => Some(truth.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        }
    }
}

/// The marked parameters of a tool's input schema.
///
/// # Errors
/// What is wrong with a mark, for people.
pub fn param_headers(schema: &JsonObject) -> Result<Vec<ParamHeader>, String> {
    let mut found = Vec::new();
    collect(schema, &mut Vec::new(), &mut found)?;
    let marks = count(&Value::Object(schema.clone()));
    if marks != found.len() {
        return Err(format!(
            "{KEYWORD} stands where no header can repeat it: only properties of objects can be"
        ));
    }
    Ok(found)
}

fn collect(schema: &JsonObject, path: &mut Vec<String>, found: &mut Vec<ParamHeader>) -> Result<(), String> {
    let Some(Value::Object(properties)) = schema.get("properties") else { return Ok(()) };
    for (name, property) in properties {
        let Value::Object(property) = property else { continue };
        path.push(name.clone());
        if let Some(mark) = property.get(KEYWORD) {
            let header = mark.as_str().filter(|header| is_token(header));
            let header = header.ok_or_else(|| format!("{KEYWORD} of {name} is no name for a header"))?;
            let kind = property.get("type").and_then(Value::as_str);
            if !matches!(kind, Some("string" | "integer" | "boolean")) {
                return Err(format!("{KEYWORD} of {name}: only strings, integers and booleans fit a header"));
            }
            if found.iter().any(|known| known.name.eq_ignore_ascii_case(header)) {
                return Err(format!("{KEYWORD} {header} stands twice"));
            }
            found.push(ParamHeader { name: header.to_owned(), path: path.clone() });
        }
        collect(property, path, found)?;
        path.pop();
    }
    Ok(())
}

fn count(schema: &Value) -> usize {
    match schema {
        Value::Object(members) => {
            usize::from(members.contains_key(KEYWORD)) + members.values().map(count).sum::<usize>()
        }
        Value::Array(items) => items.iter().map(count).sum(),
        _ => 0,
    }
}

fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(schema: Value) -> Result<Vec<ParamHeader>, String> {
        let Value::Object(schema) = schema else { panic!("no object") };
        param_headers(&schema)
    }

    #[test]
    fn param_headers_are_found_in_nested_properties() {
        let found = read(json!({"properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "where": {"type": "object", "properties": {"zone": {"type": "integer", "x-mcp-header": "Zone"}}}
        }}));
        let found = found.unwrap();
        assert_eq!(found[0], ParamHeader { name: "Region".into(), path: vec!["region".into()] });
        assert_eq!(found[1].path, ["where", "zone"]);
    }

    #[test]
    fn param_header_values_come_from_arguments() {
        let zone = ParamHeader { name: "Zone".into(), path: vec!["where".into(), "zone".into()] };
        for (arguments, value) in [
            (json!({"where": {"zone": 7}}), Some("7")),
            (json!({"where": {"zone": "north"}}), Some("north")),
            (json!({"where": {"zone": ""}}), Some("")),
            (json!({"where": {"zone": false}}), Some("false")),
            (json!({"where": {"zone": null}}), None),
            (json!({"where": 7}), None),
            (json!({}), None),
        ] {
            assert_eq!(zone.value(arguments.as_object().unwrap()).as_deref(), value, "{arguments}");
        }
    }

    #[test]
    fn invalid_x_mcp_header_marks_are_refused() {
        for property in [
            json!({"type": "number", "x-mcp-header": "A"}),
            json!({"type": "string", "x-mcp-header": ""}),
            json!({"type": "string", "x-mcp-header": "a b"}),
            json!({"type": "array", "items": {"type": "string", "x-mcp-header": "A"}}),
        ] {
            assert!(read(json!({"properties": {"p": property}})).is_err(), "{property}");
        }
        let twice = json!({"type": "string", "x-mcp-header": "A"});
        assert!(
            read(json!({"properties": {"p": twice, "q": {"type": "string", "x-mcp-header": "a"}}})).is_err()
        );
    }
}
