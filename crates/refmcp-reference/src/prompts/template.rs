//! A prompt as a file: what is known about it, and a text with places to fill in.

use refmcp_server::model::{PromptArgument, PromptMessage};
use refmcp_server::{Prompt, PromptArguments};

/// What a file says.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Template {
    title: Option<String>,
    description: Option<String>,
    arguments: Vec<PromptArgument>,
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq)]
enum Piece {
    Text(String),
    Argument(String),
}

impl Template {
    /// Reads a file; if it is not one of ours, says why.
    pub(super) fn parse(file: &str) -> Result<Self, String> {
        let file = file.replace("\r\n", "\n");
        let mut template = Self::default();
        let body = match file.strip_prefix("---\n") {
            None => file.as_str(),
            Some(rest) => {
                let (head, body) =
                    split_head(rest).ok_or("the line of dashes that ends its head is missing")?;
                head.lines()
                    .filter(|line| !line.trim().is_empty())
                    .try_for_each(|line| template.known(line))?;
                body
            }
        };
        template.fill_in(body)?;
        Ok(template)
    }

    /// Takes one line of the head.
    fn known(&mut self, line: &str) -> Result<(), String> {
        let (key, value) = line.split_once(':').ok_or_else(|| format!("{line:?} has no colon"))?;
        let value = value.trim().to_owned();
        match key.trim().split_once(' ').map_or((key.trim(), None), |(key, name)| (key, Some(name.trim()))) {
            ("title", None) => self.title = Some(value),
            ("description", None) => self.description = Some(value),
            (kind @ ("argument" | "optional"), Some(name)) if is_name(name) => {
                if self.arguments.iter().any(|known| known.name == name) {
                    return Err(format!("argument {name} is there twice"));
                }
                self.arguments
                    .push(PromptArgument::new(name).description(value).required(kind == "argument"));
            }
            _ => return Err(format!("{key:?} is not understood")),
        }
        Ok(())
    }

    /// Takes the text apart; arguments that were not described must be given.
    fn fill_in(&mut self, body: &str) -> Result<(), String> {
        let mut rest = body.trim();
        while let Some((text, after)) = rest.split_once("{{") {
            let (name, after) = after.split_once("}}").ok_or("a {{ has no }}")?;
            let name = name.trim();
            if !is_name(name) {
                return Err(format!("{{{{{name}}}}} is no name of an argument"));
            }
            if !self.arguments.iter().any(|known| known.name == name) {
                self.arguments.push(PromptArgument::new(name).required(true));
            }
            self.pieces.extend([Piece::Text(text.to_owned()), Piece::Argument(name.to_owned())]);
            rest = after;
        }
        self.pieces.push(Piece::Text(rest.to_owned()));
        if self.pieces.iter().all(|piece| matches!(piece, Piece::Text(text) if text.is_empty())) {
            return Err("it has no text".to_owned());
        }
        Ok(())
    }

    /// The text with the arguments filled in; what is filled in is not looked at again.
    fn text(&self, given: &PromptArguments) -> String {
        let pieces = self.pieces.iter().map(|piece| match piece {
            Piece::Text(text) => text.as_str(),
            Piece::Argument(name) => given.get(name).map(String::as_str).unwrap_or_default(),
        });
        pieces.collect()
    }

    /// The prompt of this name.
    pub(super) fn prompt(self, name: &str) -> Prompt {
        let (title, description) = (self.title.clone(), self.description.clone());
        let arguments = self.arguments.clone();
        let mut prompt = Prompt::new(name, move |_, given| {
            let message = PromptMessage::user(self.text(&given));
            async move { Ok(message) }
        });
        if let Some(title) = title {
            prompt = prompt.title(title);
        }
        prompt = prompt.description(description.unwrap_or_else(|| format!("The prompt {name}")));
        arguments.into_iter().fold(prompt, Prompt::argument)
    }
}

/// Head and body of what follows the first line of dashes.
fn split_head(rest: &str) -> Option<(&str, &str)> {
    match rest.strip_prefix("---\n") {
        Some(body) => Some(("", body)),
        None => rest.split_once("\n---\n").or_else(|| Some((rest.strip_suffix("\n---")?, ""))),
    }
}

/// Whether a prompt or an argument may be called this.
pub(super) fn is_name(name: &str) -> bool {
    (1..=128).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read() {
        let file = "---\ntitle: T: t\ndescription: D\noptional b: Bee\n---\n\nA {{ a }} and {{b}}{{a}}.\n";
        let template = Template::parse(file).unwrap();
        assert_eq!((template.title.as_deref(), template.description.as_deref()), (Some("T: t"), Some("D")));
        let known: Vec<_> =
            template.arguments.iter().map(|known| (known.name.as_str(), known.required)).collect();
        assert_eq!(known, [("b", Some(false)), ("a", Some(true))]);
        let given = [("a".to_owned(), "{{b}}".to_owned())].into();
        assert_eq!(template.text(&given), "A {{b}} and {{b}}.");
        assert_eq!(template, Template::parse(&file.replace('\n', "\r\n")).unwrap());
    }

    #[test]
    fn a_head_is_optional() {
        assert_eq!(Template::parse("just text").unwrap().text(&PromptArguments::new()), "just text");
        assert_eq!(Template::parse("---\n---\ntext").unwrap().text(&PromptArguments::new()), "text");
    }

    #[test]
    fn faults_are_named() {
        for (file, word) in [
            ("---\ntitle: T\ntext", "dashes"),
            ("---\ntitle\n---\ntext", "colon"),
            ("---\nauthor: A\n---\ntext", "author"),
            ("---\nargument a b: A\n---\ntext", "argument a b"),
            ("---\nargument a: A\noptional a: A\n---\ntext", "twice"),
            ("---\ntitle: T\n---\n", "no text"),
            ("Hello {{name", "}}"),
            ("Hello {{}}", "name"),
            ("", "no text"),
        ] {
            let fault = Template::parse(file).unwrap_err();
            assert!(fault.contains(word), "{file:?}: {fault}");
        }
    }
}
