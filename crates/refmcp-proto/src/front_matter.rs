//! The YAML front matter of Markdown files, as values with their lines.
//!
//! YAML is read as events: each value keeps its line for error messages, and each scalar the text that was written. Anchors,
//! aliases and tags are refused instead of expanded, and so are keys that are there twice: two readers of one text see the same.

use saphyr_parser::{Event, Parser, ScalarStyle, Span};
use serde_json::{Number, Value as Json};

use crate::model::JsonObject;

/// The line above and below front matter.
const FENCE: &str = "---";

/// What is wrong with front matter, and in which line of its file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct FrontMatterError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong, and what to write instead.
    pub what: String,
}

impl FrontMatterError {
    fn new(line: usize, what: impl Into<String>) -> Self {
        Self { line, what: what.into() }
    }
}

/// A file that begins with front matter, in its two parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts<'a> {
    /// The YAML, without the lines around it.
    pub yaml: &'a str,
    /// What stands below.
    pub body: &'a str,
}

/// The line of a file in which YAML begins.
pub const FIRST_LINE: usize = 2;

/// Splits a file that begins with front matter.
///
/// # Errors
/// It does not begin with a line `---`, or no such line ends the front matter.
pub fn split(text: &str) -> Result<Parts<'_>, FrontMatterError> {
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().unwrap_or_default();
    if first.trim_end() != FENCE || !first.ends_with('\n') {
        let what =
            "there is no front matter; begin the file with a line `---`, the fields and another line `---`";
        return Err(FrontMatterError::new(1, what));
    }
    let mut at = first.len();
    for line in lines {
        if line.trim_end() == FENCE {
            let yaml = text.get(first.len()..at).unwrap_or_default();
            return Ok(Parts { yaml, body: text.get(at + line.len()..).unwrap_or_default() });
        }
        at += line.len();
    }
    Err(FrontMatterError::new(1, "the front matter does not end; write a line `---` below it"))
}

/// A YAML value, and the line of the file that it begins in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The line, from 1.
    pub line: usize,
    /// The value.
    pub value: Value,
}

/// What a YAML value is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A scalar, as its text.
    Scalar {
        /// What was written, without quotes.
        text: String,
        /// Whether it was written without quotes, and may so be something else than text.
        is_plain: bool,
    },
    /// A sequence.
    List(Vec<Node>),
    /// A mapping, in its order.
    Mapping(Vec<(Key, Node)>),
}

/// The key of a member of a mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// The line, from 1.
    pub line: usize,
    /// What was written.
    pub text: String,
}

/// Reads YAML whose first line is this line of its file, with at most so many collections inside each other.
///
/// # Errors
/// The line that is wrong, and what to write instead.
pub fn read(yaml: &str, first_line: usize, max_depth: usize) -> Result<Option<Node>, FrontMatterError> {
    let above = first_line.saturating_sub(1);
    Reader { events: Parser::new_from_str(yaml), above, max_depth }.document()
}

/// Turns the events of the YAML parser into nodes.
struct Reader<'a> {
    events: Parser<'a, saphyr_parser::StrInput<'a>>,
    /// Lines of the file above the YAML.
    above: usize,
    max_depth: usize,
}

impl<'a> Reader<'a> {
    /// The one document, unless there is nothing.
    fn document(mut self) -> Result<Option<Node>, FrontMatterError> {
        let mut root = None;
        loop {
            let (event, line) = self.next()?;
            match event {
                Event::StreamEnd => return Ok(root),
                Event::DocumentStart(_) if root.is_some() => {
                    let what = "the front matter ends with `...`; remove that line";
                    return Err(FrontMatterError::new(line, what));
                }
                Event::StreamStart | Event::DocumentStart(_) | Event::DocumentEnd | Event::Nothing => {}
                event => root = Some(self.node(event, line, 0)?).filter(|node| !node.is_null()),
            }
        }
    }

    fn next(&mut self) -> Result<(Event<'a>, usize), FrontMatterError> {
        match self.events.next_event() {
            Some(Ok((event, Span { start, .. }))) => Ok((event, start.line() + self.above)),
            Some(Err(error)) => {
                let line = error.marker().line() + self.above;
                let what = format!(
                    "this is not valid YAML: {}; put a value with `: `, ` #`, brackets or quotes in double quotes",
                    error.info()
                );
                Err(FrontMatterError::new(line, what))
            }
            None => Ok((Event::StreamEnd, self.above)),
        }
    }

    fn node(&mut self, event: Event<'a>, line: usize, depth: usize) -> Result<Node, FrontMatterError> {
        let value = match event {
            Event::Scalar(text, style, 0, None) => {
                Value::Scalar { text: text.into_owned(), is_plain: style == ScalarStyle::Plain }
            }
            Event::SequenceStart(..) | Event::MappingStart(..) if depth == self.max_depth => {
                return Err(FrontMatterError::new(line, "this is nested too deeply"));
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
                return Err(FrontMatterError::new(line, what));
            }
        };
        Ok(Node { line, value })
    }

    fn mapping(&mut self, depth: usize) -> Result<Value, FrontMatterError> {
        let mut members: Vec<(Key, Node)> = Vec::new();
        loop {
            let (event, line) = self.next()?;
            if event == Event::MappingEnd {
                return Ok(Value::Mapping(members));
            }
            let key = self.node(event, line, depth + 1)?;
            let Value::Scalar { text, .. } = &key.value else {
                return Err(FrontMatterError::new(line, "a key is a word, such as `title`"));
            };
            if key.is_null() {
                return Err(FrontMatterError::new(line, "a key is a word, such as `title`"));
            }
            if members.iter().any(|(known, _)| known.text == *text) {
                let what = format!("the key `{text}` is there twice; remove one");
                return Err(FrontMatterError::new(line, what));
            }
            let (event, value_line) = self.next()?;
            let value = self.node(event, value_line, depth + 1)?;
            members.push((Key { line, text: text.clone() }, value));
        }
    }
}

impl Node {
    /// Whether nothing stands there, or `null`.
    pub fn is_null(&self) -> bool {
        match &self.value {
            Value::Scalar { text, is_plain } => *is_plain && is_null(text),
            _ => false,
        }
    }

    /// The members of a mapping.
    ///
    /// # Errors
    /// It is none; the error says this.
    pub fn into_mapping(self, otherwise: &str) -> Result<Vec<(Key, Self)>, FrontMatterError> {
        match self.value {
            Value::Mapping(members) => Ok(members),
            _ => Err(FrontMatterError::new(self.line, otherwise)),
        }
    }

    /// The items of a list; where nothing stands there, it is empty.
    ///
    /// # Errors
    /// It is none; the error says this.
    pub fn into_list(self, otherwise: &str) -> Result<Vec<Self>, FrontMatterError> {
        match self.value {
            Value::List(items) => Ok(items),
            _ if self.is_null() => Ok(Vec::new()),
            _ => Err(FrontMatterError::new(self.line, otherwise)),
        }
    }

    /// The text of a scalar as it was written, also where it would be a number; none where nothing stands there.
    ///
    /// # Errors
    /// It is a list or a mapping.
    pub fn into_text(self, key: &str) -> Result<Option<String>, FrontMatterError> {
        match self.value {
            _ if self.is_null() => Ok(None),
            Value::Scalar { text, .. } => Ok(Some(text)),
            _ => {
                let what = format!("`{key}` takes text; put what has brackets in quotes");
                Err(FrontMatterError::new(self.line, what))
            }
        }
    }

    /// The value as JSON, by the core schema of YAML 1.2: dates are texts, and `yes` is one.
    ///
    /// # Errors
    /// A number has no JSON.
    pub fn into_json(self) -> Result<Json, FrontMatterError> {
        Ok(match self.value {
            Value::Scalar { text, is_plain: true } => scalar(text, self.line)?,
            Value::Scalar { text, is_plain: false } => Json::String(text),
            Value::List(items) => {
                Json::Array(items.into_iter().map(Self::into_json).collect::<Result<_, _>>()?)
            }
            Value::Mapping(members) => {
                let members = members.into_iter().map(|(key, node)| Ok((key.text, node.into_json()?)));
                Json::Object(members.collect::<Result<JsonObject, _>>()?)
            }
        })
    }
}

fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

/// What a scalar without quotes is.
fn scalar(text: String, line: usize) -> Result<Json, FrontMatterError> {
    match text.as_str() {
        text if is_null(text) => return Ok(Json::Null),
        "true" | "True" | "TRUE" => return Ok(Json::Bool(true)),
        "false" | "False" | "FALSE" => return Ok(Json::Bool(false)),
        _ => {}
    }
    let number = integer(&text).or_else(|| is_float(&text).then(|| float(&text)));
    match number {
        None => Ok(Json::String(text)),
        Some(Some(number)) => Ok(Json::Number(number)),
        Some(None) => {
            let what = format!("{text} is a number that JSON does not have; put it in quotes");
            Err(FrontMatterError::new(line, what))
        }
    }
}

/// An integer; none within if it is too large.
fn integer(text: &str) -> Option<Option<Number>> {
    let radix = |prefix: &str, radix: u32| {
        let digits = text.strip_prefix(prefix).filter(|digits| !digits.is_empty())?;
        let is_number = digits.chars().all(|digit| digit.is_digit(radix));
        is_number.then(|| u64::from_str_radix(digits, radix).ok().map(Number::from))
    };
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        let unsigned = || text.strip_prefix('+').unwrap_or(text).parse::<u64>().ok().map(Number::from);
        return Some(text.parse::<i64>().ok().map(Number::from).or_else(unsigned));
    }
    radix("0o", 8).or_else(|| radix("0x", 16))
}

fn float(text: &str) -> Option<Number> {
    text.parse::<f64>().ok().and_then(Number::from_f64)
}

/// Whether a text is a float, or what YAML has for infinity and no number.
fn is_float(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return true;
    }
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['-', '+']).unwrap_or(exponent))),
        None => (unsigned, None),
    };
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    digits(whole)
        && digits(part)
        && !(whole.is_empty() && part.is_empty())
        && exponent.is_none_or(|exponent| !exponent.is_empty() && digits(exponent))
}

#[cfg(test)]
mod tests;
