//! `SKILL.md`: front matter and body.

use serde_json::Value;

use super::uri::is_skill_name;
use crate::front_matter::{self, FrontMatterError};
use crate::model::JsonObject;

/// The largest front matter.
const MAX_FRONT_MATTER: usize = 64 << 10;

/// Collections inside each other.
const MAX_DEPTH: usize = 16;

/// The most characters of a description.
const MAX_DESCRIPTION: usize = 1024;

/// A `SKILL.md`, read.
#[derive(Debug, Clone, PartialEq)]
pub struct Document<'a> {
    /// All fields at its top.
    pub frontmatter: JsonObject,
    /// The instructions below.
    pub body: &'a str,
}

/// Why a text is no `SKILL.md`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// The front matter cannot be read.
    #[error(transparent)]
    FrontMatter(#[from] FrontMatterError),
    /// The fields do not describe a skill.
    #[error("{0}")]
    Fields(String),
}

impl<'a> Document<'a> {
    /// Reads a `SKILL.md`.
    ///
    /// # Errors
    /// It does not begin with front matter that has a name and a description.
    pub fn parse(text: &'a str) -> Result<Self, DocumentError> {
        let parts = front_matter::split(text)?;
        if parts.yaml.len() > MAX_FRONT_MATTER {
            let what = format!("the front matter is larger than {} KiB; shorten it", MAX_FRONT_MATTER >> 10);
            return Err(DocumentError::Fields(what));
        }
        let root = front_matter::read(parts.yaml, front_matter::FIRST_LINE, MAX_DEPTH)?;
        let frontmatter = match root.map(front_matter::Node::into_json).transpose()? {
            Some(Value::Object(fields)) => fields,
            None => JsonObject::new(),
            Some(_) => return Err(DocumentError::Fields("the front matter is no list of fields".to_owned())),
        };
        check_fields(&frontmatter).map_err(DocumentError::Fields)?;
        Ok(Self { frontmatter, body: parts.body })
    }

    /// The name of the skill.
    pub fn name(&self) -> &str {
        text(&self.frontmatter, "name")
    }

    /// What the skill is for.
    pub fn description(&self) -> &str {
        text(&self.frontmatter, "description")
    }
}

/// A field that is text.
pub(super) fn text<'a>(fields: &'a JsonObject, name: &str) -> &'a str {
    fields.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Whether the fields describe a skill; if not, what to write.
pub(super) fn check_fields(fields: &JsonObject) -> Result<(), String> {
    let name = text(fields, "name");
    if !is_skill_name(name) {
        return Err(format!(
            "the name {name:?} is none of a skill; write 1 to 64 lower-case letters, digits and single hyphens"
        ));
    }
    let description = text(fields, "description");
    if description.trim().is_empty() {
        return Err("there is no description; write what the skill is for, and when".to_owned());
    }
    if description.chars().count() > MAX_DESCRIPTION {
        return Err(format!("the description has more than {MAX_DESCRIPTION} characters; shorten it"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn all_fields_are_kept() {
        let text = "---\nname: a-b\ndescription: What\nmetadata:\n  version: \"1\"\n---\nBody\n";
        let document = Document::parse(text).unwrap();
        assert_eq!((document.name(), document.description(), document.body), ("a-b", "What", "Body\n"));
        let fields = json!({ "name": "a-b", "description": "What", "metadata": { "version": "1" } });
        assert_eq!(Value::Object(document.frontmatter), fields);
    }

    #[test]
    fn what_is_no_skill_is_said() {
        for (yaml, expected) in [
            ("", "the name"),
            ("- a", "no list of fields"),
            ("name: A\ndescription: x", "the name"),
            ("name: 1\ndescription: x", "the name"),
            ("name: a", "no description"),
            ("name: a\ndescription: ' '", "no description"),
            ("name: a\nname: a\ndescription: x", "twice"),
        ] {
            let text = format!("---\n{yaml}\n---\n");
            let error = Document::parse(&text).unwrap_err().to_string();
            assert!(error.contains(expected), "{yaml:?}: {error}");
        }
        let long = format!("---\nname: a\ndescription: {}\n---\n", "x".repeat(1025));
        assert!(Document::parse(&long).unwrap_err().to_string().contains("1024"));
    }
}
