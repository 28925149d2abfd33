//! The YAML front matter of a prompt file: title, description and arguments.
//!
//! The YAML is read as events, not as a document: every value keeps its line for error messages, every scalar keeps
//! the text that was written (`default: 1.0` is the text `1.0`), and anchors and aliases are refused instead of
//! expanded.

use saphyr_parser::{Event, Parser, ScalarStyle, Span};

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
        let Some(root) = Reader::new(text, first_line).document()? else { return Ok(front_matter) };
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
            "required" => required = value.into_bool("required")?,
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

/// A YAML value, and the line of the file it begins in.
struct Node {
    line: usize,
    value: Value,
}

enum Value {
    /// Nothing stands there, or `null`.
    Null,
    Text(String),
    List(Vec<Node>),
    Mapping(Vec<(Key, Node)>),
}

struct Key {
    line: usize,
    text: String,
}

impl Node {
    fn into_mapping(self, otherwise: &str) -> Result<Vec<(Key, Node)>, FileFault> {
        match self.value {
            Value::Mapping(members) => Ok(members),
            _ => Err(FileFault::new(self.line, otherwise)),
        }
    }

    fn into_list(self, otherwise: &str) -> Result<Vec<Node>, FileFault> {
        match self.value {
            Value::List(items) => Ok(items),
            Value::Null => Ok(Vec::new()),
            _ => Err(FileFault::new(self.line, otherwise)),
        }
    }

    fn into_text(self, key: &str) -> Result<Option<String>, FileFault> {
        match self.value {
            Value::Text(text) => Ok(Some(text)),
            Value::Null => Ok(None),
            _ => {
                Err(FileFault::new(self.line, format!("`{key}` takes text; put what has brackets in quotes")))
            }
        }
    }

    fn into_bool(self, key: &str) -> Result<Option<bool>, FileFault> {
        let line = self.line;
        match self.into_text(key)?.as_deref() {
            None => Ok(None),
            Some("true") => Ok(Some(true)),
            Some("false") => Ok(Some(false)),
            Some(other) => Err(FileFault::new(line, format!("`{key}` is {other:?}; write true or false"))),
        }
    }
}

/// Turns the events of the YAML parser into nodes.
struct Reader<'a> {
    events: Parser<'a, saphyr_parser::StrInput<'a>>,
    /// Lines of the file above the YAML.
    above: usize,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str, first_line: usize) -> Self {
        Self { events: Parser::new_from_str(text), above: first_line.saturating_sub(1) }
    }

    /// The one document, unless there is nothing.
    fn document(mut self) -> Result<Option<Node>, FileFault> {
        let mut root = None;
        loop {
            let (event, line) = self.next()?;
            match event {
                Event::StreamEnd => return Ok(root),
                Event::DocumentStart(_) if root.is_some() => {
                    return Err(FileFault::new(line, "the front matter ends with `...`; remove that line"));
                }
                Event::StreamStart | Event::DocumentStart(_) | Event::DocumentEnd | Event::Nothing => {}
                event => {
                    root = Some(self.node(event, line, 0)?).filter(|node| !matches!(node.value, Value::Null));
                }
            }
        }
    }

    fn next(&mut self) -> Result<(Event<'a>, usize), FileFault> {
        match self.events.next_event() {
            Some(Ok((event, Span { start, .. }))) => Ok((event, start.line() + self.above)),
            Some(Err(error)) => {
                let line = error.marker().line() + self.above;
                let what = format!(
                    "this is not valid YAML: {}; put a value with `: `, ` #`, brackets or quotes in double quotes",
                    error.info()
                );
                Err(FileFault::new(line, what))
            }
            None => Ok((Event::StreamEnd, self.above)),
        }
    }

    fn node(&mut self, event: Event<'a>, line: usize, depth: usize) -> Result<Node, FileFault> {
        let value = match event {
            Event::Scalar(text, style, 0, None) => {
                let plain = style == ScalarStyle::Plain;
                match &*text {
                    "" | "~" | "null" if plain => Value::Null,
                    text => Value::Text(text.to_owned()),
                }
            }
            Event::SequenceStart(..) | Event::MappingStart(..) if depth == MAX_DEPTH => {
                return Err(FileFault::new(line, format!("this is nested too deeply; {KEYS}")));
            }
            Event::SequenceStart(0, None) => {
                let mut items = Vec::new();
                loop {
                    match self.next()? {
                        (Event::SequenceEnd, _) => break Value::List(items),
                        (event, line) => items.push(self.node(event, line, depth + 1)?),
                    }
                }
            }
            Event::MappingStart(0, None) => self.mapping(depth)?,
            _ => {
                let what = "anchors (&), aliases (*) and tags (!) are not supported; write the value out, in quotes \
                            if it begins with such a character";
                return Err(FileFault::new(line, what));
            }
        };
        Ok(Node { line, value })
    }

    fn mapping(&mut self, depth: usize) -> Result<Value, FileFault> {
        let mut members: Vec<(Key, Node)> = Vec::new();
        loop {
            let (event, line) = self.next()?;
            if event == Event::MappingEnd {
                return Ok(Value::Mapping(members));
            }
            let Value::Text(text) = self.node(event, line, depth + 1)?.value else {
                return Err(FileFault::new(line, "a key is a word, such as `title`"));
            };
            if members.iter().any(|(key, _)| key.text == text) {
                return Err(FileFault::new(line, format!("the key `{text}` is there twice; remove one")));
            }
            let (event, value_line) = self.next()?;
            let value = self.node(event, value_line, depth + 1)?;
            members.push((Key { line, text }, value));
        }
    }
}

#[cfg(test)]
mod tests;
