//! The YAML front matter of a prompt file: title, description and arguments.
//!
//! Every scalar keeps the text that was written: `default: 1.0` is the text `1.0`.

use refmcp_server::front_matter::{self, Node};

use super::template::{FileFault, is_name};

/// The largest front matter.
const MAX_BYTES: usize = 64 << 10;
/// Arguments that one prompt may have.
pub(super) const MAX_ARGUMENTS: usize = 100;
/// Collections inside each other: the keys, the arguments, one argument, its values.
const MAX_DEPTH: usize = 4;

const KEYS: &str = "the keys are title, description and arguments";
const ARGUMENT_KEYS: &str =
    "the keys of an argument are name, title, description, required, default and values";

/// What stands above the text of a prompt file.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct FrontMatter {
    pub(super) title: Option<String>,
    pub(super) description: Option<String>,
    pub(super) arguments: Vec<Argument>,
}

/// One argument of a prompt file.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Argument {
    pub(super) name: String,
    pub(super) title: Option<String>,
    pub(super) description: Option<String>,
    pub(super) required: bool,
    /// The value of an argument that is not given.
    pub(super) default: Option<String>,
    /// Values that are suggested by completion.
    pub(super) values: Vec<String>,
    /// The line of the file that describes it.
    pub(super) line: usize,
}

impl FrontMatter {
    /// Reads front matter whose first line is this line of the file.
    pub(super) fn parse(text: &str, first_line: usize) -> Result<Self, FileFault> {
        if text.len() > MAX_BYTES {
            let most = MAX_BYTES >> 10;
            return Err(FileFault::new(
                first_line,
                format!("the front matter is larger than {most} KiB; shorten it"),
            ));
        }
        let mut front_matter = Self::default();
        let Some(root) = front_matter::read(text, first_line, MAX_DEPTH)? else { return Ok(front_matter) };
        for (key, value) in root.into_mapping(&format!("expected `title: …`; {KEYS}"))? {
            match key.text.as_str() {
                "title" => front_matter.title = value.into_text("title")?,
                "description" => front_matter.description = value.into_text("description")?,
                "arguments" => front_matter.arguments = arguments(value)?,
                other => return Err(FileFault::new(key.line, unknown_key(other))),
            }
        }
        Ok(front_matter)
    }
}

/// What is wrong with a key at the top, and what to write instead.
fn unknown_key(key: &str) -> String {
    match key.split_once(' ') {
        Some(("argument" | "optional", name)) => {
            format!(
                "the key `{key}` is unknown; describe arguments in a list: `arguments:`, then `- name: {name}`"
            )
        }
        _ if key == "name" => {
            "the key `name` is unknown; a prompt is named after its file, so rename the file".to_owned()
        }
        _ if key == "messages" || key == "role" => {
            format!("the key `{key}` is unknown; begin a message in the text with {{{{role \"assistant\"}}}}")
        }
        _ => format!("the key `{key}` is unknown; {KEYS}"),
    }
}

fn arguments(value: Node) -> Result<Vec<Argument>, FileFault> {
    let line = value.line;
    let mut arguments: Vec<Argument> = Vec::new();
    for item in value.into_list("`arguments` is a list; write `- name: NAME` for each argument")? {
        let argument = argument(item)?;
        if arguments.iter().any(|known| known.name == argument.name) {
            let what = format!("the argument `{}` is described twice; remove one", argument.name);
            return Err(FileFault::new(argument.line, what));
        }
        arguments.push(argument);
    }
    if arguments.len() > MAX_ARGUMENTS {
        let what = format!("there are more than {MAX_ARGUMENTS} arguments; remove some");
        return Err(FileFault::new(line, what));
    }
    Ok(arguments)
}

fn argument(item: Node) -> Result<Argument, FileFault> {
    let line = item.line;
    let mut argument = Argument { line, ..Argument::default() };
    let (mut name, mut required) = (None, None);
    for (key, value) in item.into_mapping(&format!("expected `- name: NAME`; {ARGUMENT_KEYS}"))? {
        match key.text.as_str() {
            "name" => name = value.into_text("name")?,
            "title" => argument.title = value.into_text("title")?,
            "description" => argument.description = value.into_text("description")?,
            "default" => argument.default = value.into_text("default")?,
            "required" => required = into_bool(value, "required")?,
            "values" => {
                let list = value.into_list("`values` is a list; write it as [one, two]")?;
                let values = list.into_iter().map(|value| value.into_text("values"));
                argument.values = values
                    .collect::<Result<Vec<_>, _>>()?
                    .into_iter()
                    .map(Option::unwrap_or_default)
                    .collect();
            }
            other => {
                return Err(FileFault::new(
                    key.line,
                    format!("the key `{other}` is unknown; {ARGUMENT_KEYS}"),
                ));
            }
        }
    }
    argument.name = name.ok_or_else(|| FileFault::new(line, "an argument has no name; add `name: NAME`"))?;
    if !is_name(&argument.name) {
        let what = format!(
            "{:?} is no name of an argument; use letters, digits, '_', '-' and '.', at most 128",
            argument.name
        );
        return Err(FileFault::new(line, what));
    }
    if required == Some(true) && argument.default.is_some() {
        let what = format!(
            "the argument `{}` is required and has a default, which would never be used; remove one",
            argument.name
        );
        return Err(FileFault::new(line, what));
    }
    argument.required = required.unwrap_or(argument.default.is_none());
    Ok(argument)
}

fn into_bool(node: Node, key: &str) -> Result<Option<bool>, FileFault> {
    let line = node.line;
    match node.into_text(key)?.as_deref() {
        None => Ok(None),
        Some("true") => Ok(Some(true)),
        Some("false") => Ok(Some(false)),
        Some(other) => Err(FileFault::new(line, format!("`{key}` is {other:?}; write true or false"))),
    }
}

#[cfg(test)]
mod tests;
