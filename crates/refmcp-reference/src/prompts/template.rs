//! A prompt as a file: front matter about it, if any, and its text.

use std::fmt;

use refmcp_server::Prompt;
use refmcp_server::front_matter::FrontMatterError;
use refmcp_server::model::{GetPromptResult, PromptArgument};

use super::body::Body;
use super::front_matter::{Argument, FrontMatter, MAX_ARGUMENTS};

/// What a file says.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Template {
    front_matter: FrontMatter,
    body: Body,
}

/// Why a file is no prompt: the line, and what to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileFault {
    /// `None` where the whole file is meant.
    line: Option<usize>,
    what: String,
}

impl FileFault {
    pub(super) fn new(line: usize, what: impl Into<String>) -> Self {
        Self { line: Some(line), what: what.into() }
    }

    /// A fault that no line is to blame for.
    pub(super) fn of_file(what: impl Into<String>) -> Self {
        Self { line: None, what: what.into() }
    }
}

impl From<FrontMatterError> for FileFault {
    fn from(FrontMatterError { line, what }: FrontMatterError) -> Self {
        Self::new(line, what)
    }
}

impl fmt::Display for FileFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

impl Template {
    /// Reads a file.
    pub(super) fn parse(file: &str) -> Result<Self, FileFault> {
        let file = file.strip_prefix('\u{feff}').unwrap_or(file).replace("\r\n", "\n");
        let (mut front_matter, body) = match split(&file)? {
            None => (FrontMatter::default(), Body::parse(&file, 1)?),
            Some((yaml, body)) => {
                let line = 3 + yaml.matches('\n').count();
                (FrontMatter::parse(yaml, 2)?, Body::parse(body, line)?)
            }
        };
        for (name, line) in body.arguments() {
            if !front_matter.arguments.iter().any(|known| known.name == name) {
                if front_matter.arguments.len() == MAX_ARGUMENTS {
                    let what = format!("there are more than {MAX_ARGUMENTS} arguments; remove some");
                    return Err(FileFault::new(line, what));
                }
                let required =
                    Argument { name: name.to_owned(), required: true, line, ..Argument::default() };
                front_matter.arguments.push(required);
            }
        }
        Ok(Self { front_matter, body })
    }

    /// Arguments that are described and used nowhere, with the line that describes each.
    pub(super) fn unused(&self) -> Vec<(&str, usize)> {
        let used = self.body.arguments();
        let unused = |argument: &&Argument| !used.iter().any(|(name, _)| *name == argument.name);
        let arguments = self.front_matter.arguments.iter().filter(unused);
        arguments.map(|argument| (argument.name.as_str(), argument.line)).collect()
    }

    /// The prompt of this name.
    pub(super) fn prompt(self, name: &str) -> Prompt {
        let FrontMatter { title, description, arguments } = self.front_matter;
        let (body, filled, about) = (self.body, arguments.clone(), description.clone());
        let mut prompt = Prompt::new(name, move |_, given| {
            let value = |name: &str| {
                let default = || filled.iter().find(|known| known.name == name)?.default.as_deref();
                given.get(name).map(String::as_str).or_else(default).unwrap_or_default()
            };
            let result = body.fill(value).map(|messages| {
                let result = GetPromptResult::new(messages);
                match &about {
                    Some(about) => result.description(about.clone()),
                    None => result,
                }
            });
            async move { result }
        });
        if let Some(title) = title {
            prompt = prompt.title(title);
        }
        prompt = prompt.description(description.unwrap_or_else(|| format!("The prompt {name}")));
        arguments.into_iter().fold(prompt, with_argument)
    }
}

fn with_argument(prompt: Prompt, argument: Argument) -> Prompt {
    let Argument { name, title, description, required, values, .. } = argument;
    let mut listed = PromptArgument::new(name.clone()).required(required);
    (listed.title, listed.description) = (title, description);
    let prompt = prompt.argument(listed);
    if values.is_empty() {
        return prompt;
    }
    prompt.complete(name, move |_, typed| {
        let suggested = typed.among(values.iter().map(String::as_str));
        async move { suggested }
    })
}

/// Front matter and text, where there is front matter: it stands between two lines of three dashes, the first of
/// which is the file's first line.
fn split(file: &str) -> Result<Option<(&str, &str)>, FileFault> {
    let mut lines = file.split_inclusive('\n');
    let is_dashes = |line: &str| line.trim_end() == "---";
    let Some(first) = lines.next().filter(|line| is_dashes(line)) else { return Ok(None) };
    let mut end = first.len();
    for line in lines {
        if is_dashes(line) {
            let yaml = file.get(first.len()..end).unwrap_or_default();
            let body = file.get(end + line.len()..).unwrap_or_default();
            return Ok(Some((yaml, body)));
        }
        end += line.len();
    }
    Err(FileFault::new(1, "the front matter has no end; add a line of three dashes below it"))
}

/// Whether a prompt or an argument may be called this.
pub(super) fn is_name(name: &str) -> bool {
    (1..=128).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
}

#[cfg(test)]
mod tests;
