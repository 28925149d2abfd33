//! The text of a prompt file: messages with roles, and `{{name}}` where an argument is filled in.

use refmcp_server::model::{PromptMessage, Role};
use refmcp_server::{CallError, RpcError};

use super::template::{FileFault, is_name};

/// Messages that one prompt may have.
const MAX_MESSAGES: usize = 100;
/// The most text that a prompt may have once its arguments are filled in.
pub(super) const MAX_FILLED_BYTES: usize = 4 << 20;

/// The messages of a prompt file.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Body {
    messages: Vec<Message>,
}

#[derive(Debug, Clone, PartialEq)]
struct Message {
    role: Role,
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq)]
enum Piece {
    Text(String),
    Argument { name: String, line: usize },
}

impl Body {
    /// Reads text whose first line is this line of the file.
    pub(super) fn parse(text: &str, first_line: usize) -> Result<Self, FileFault> {
        let mut body = Self { messages: Vec::new() };
        let mut message = Message { role: Role::User, pieces: Vec::new() };
        // Text above the first `{{role …}}` is a message of the user, unless it is blank.
        let mut begun = None;
        let (mut rest, mut line) = (text, first_line);
        while let Some((before, after)) = rest.split_once("{{") {
            line += before.matches('\n').count();
            if let Some(before) = before.strip_suffix('\\') {
                message.push_text(before);
                message.push_text("{{");
                rest = after;
                continue;
            }
            message.push_text(before);
            // Braces that are closed lines below were forgotten to be closed here.
            let closes = |inside: &str| !inside.contains('\n') || is_name(inside.trim());
            let inside = after.split_once("}}").filter(|(inside, _)| closes(inside));
            let (inside, after) = inside.ok_or_else(|| {
                FileFault::new(
                    line,
                    "{{ has no }} in its line; add it, or write \\{{ for the braces themselves",
                )
            })?;
            match Tag::read(inside.trim(), line)? {
                Tag::Argument(name) => message.pieces.push(Piece::Argument { name, line }),
                Tag::Role(role) => {
                    let next = Message { role, pieces: Vec::new() };
                    body.end(std::mem::replace(&mut message, next), begun)?;
                    begun = Some(line);
                }
            }
            line += inside.matches('\n').count();
            rest = after;
        }
        message.push_text(rest);
        body.end(message, begun)?;
        if body.messages.is_empty() {
            return Err(FileFault::new(first_line, "there is no text; write what the prompt says"));
        }
        Ok(body)
    }

    /// Takes a message that has ended; `begun` is the line of its `{{role …}}`.
    fn end(&mut self, message: Message, begun: Option<usize>) -> Result<(), FileFault> {
        let message = message.trimmed();
        match begun {
            None if message.pieces.is_empty() => return Ok(()),
            Some(line) if message.pieces.is_empty() => {
                let what = "the message that begins here has no text; write it below, or remove {{role …}}";
                return Err(FileFault::new(line, what));
            }
            Some(line) if self.messages.len() == MAX_MESSAGES => {
                let what = format!("there are more than {MAX_MESSAGES} messages; remove some");
                return Err(FileFault::new(line, what));
            }
            _ => self.messages.push(message),
        }
        Ok(())
    }

    /// The names of the arguments that are filled in, and where each is first used.
    pub(super) fn arguments(&self) -> Vec<(&str, usize)> {
        let mut used: Vec<(&str, usize)> = Vec::new();
        for piece in self.messages.iter().flat_map(|message| &message.pieces) {
            if let Piece::Argument { name, line } = piece
                && !used.iter().any(|(known, _)| known == name)
            {
                used.push((name, *line));
            }
        }
        used
    }

    /// The messages with the arguments filled in. A value is not looked at again: `{{` in it stays.
    pub(super) fn fill<'a>(
        &'a self,
        value: impl Fn(&str) -> &'a str,
    ) -> Result<Vec<PromptMessage>, CallError> {
        let text_of = |piece: &'a Piece| match piece {
            Piece::Text(text) => text.as_str(),
            Piece::Argument { name, .. } => value(name),
        };
        let pieces = self.messages.iter().flat_map(|message| &message.pieces);
        let size = pieces.fold(0_usize, |size, piece| size.saturating_add(text_of(piece).len()));
        if size > MAX_FILLED_BYTES {
            let most = MAX_FILLED_BYTES >> 20;
            let what =
                format!("with these arguments the prompt is larger than {most} MiB; give shorter ones");
            return Err(RpcError::invalid_params(what).into());
        }
        let message = |message: &'a Message| {
            PromptMessage::new(message.role, message.pieces.iter().map(text_of).collect::<String>())
        };
        Ok(self.messages.iter().map(message).collect())
    }
}

impl Message {
    fn push_text(&mut self, text: &str) {
        match self.pieces.last_mut() {
            _ if text.is_empty() => {}
            Some(Piece::Text(before)) => before.push_str(text),
            _ => self.pieces.push(Piece::Text(text.to_owned())),
        }
    }

    /// Without white space around it.
    fn trimmed(mut self) -> Self {
        if let Some(Piece::Text(first)) = self.pieces.first_mut() {
            *first = first.trim_start().to_owned();
        }
        if let Some(Piece::Text(last)) = self.pieces.last_mut() {
            last.truncate(last.trim_end().len());
        }
        self.pieces.retain(|piece| !matches!(piece, Piece::Text(text) if text.is_empty()));
        self
    }
}

/// What stands between `{{` and `}}`.
enum Tag {
    Argument(String),
    Role(Role),
}

impl Tag {
    fn read(inside: &str, line: usize) -> Result<Self, FileFault> {
        if is_name(inside) {
            return Ok(Self::Argument(inside.to_owned()));
        }
        let role = inside.strip_prefix("role").filter(|rest| rest.starts_with(char::is_whitespace));
        match role.map(str::trim) {
            Some("\"user\"") => Ok(Self::Role(Role::User)),
            Some("\"assistant\"") => Ok(Self::Role(Role::Assistant)),
            Some(other) => {
                let what = format!(
                    "there is no role {other}; write {{{{role \"user\"}}}} or {{{{role \"assistant\"}}}}, the protocol \
                     has no other"
                );
                Err(FileFault::new(line, what))
            }
            None => {
                let what = format!(
                    "{{{{{inside}}}}} is no argument; use letters, digits, '_', '-' and '.', or write \\{{{{ for the \
                     braces themselves"
                );
                Err(FileFault::new(line, what))
            }
        }
    }
}

#[cfg(test)]
mod tests;
