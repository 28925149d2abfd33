//! One server's entry in a configuration file.

use std::path::{Path, PathBuf};

use refmcp_auth::header_value::is_token;
use refmcp_auth::secret::Secret;
use refmcp_client::redact;
use serde_json::Value;

use super::{Launch, Problem, ServerEntry};
use crate::args::UrlTransport;

/// Members that only other hosts use; they are no problem.
const FOR_OTHERS: &[&str] = &[
    "alwaysAllow",
    "autoApprove",
    "description",
    "dev",
    "disabledTools",
    "enabledTools",
    "gallery",
    "timeout",
    "tools",
    "version",
];

/// What an entry says about its transport.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Declared {
    Stdio,
    Url(UrlTransport),
}

/// Reads an entry; hints about it are added to the problems.
pub(super) fn read(
    source: &Path,
    name: &str,
    members: &[(String, Value)],
    problems: &mut Vec<Problem>,
) -> Result<ServerEntry, Problem> {
    let mut entry = Entry { source, name, members, seen: Vec::new() };
    let launch = entry.launch()?;
    if let Launch::Command { program, args, .. } = &launch
        && args.is_empty()
        && has_arguments(program)
    {
        let hint = Problem::hint(source, "has blanks in it: arguments stand in \"args\", a list of strings");
        problems.push(hint.of_server(name).of_member("command"));
    }
    let disabled = entry.flag("disabled")?.unwrap_or(false) || !entry.flag("enabled")?.unwrap_or(true);
    for (member, _) in members {
        if !entry.seen.contains(&member.as_str()) && !FOR_OTHERS.contains(&member.as_str()) {
            let hint = Problem::hint(source, "is not known here and has no effect");
            problems.push(hint.of_server(name).of_member(member));
        }
    }
    let (name, source) = (name.to_owned(), source.to_owned());
    // The text is hashed where it is read.
    let (source_sha256, used_variables) = (String::new(), Vec::new());
    Ok(ServerEntry { name, source, launch, disabled, source_sha256, used_variables })
}

/// True if a program seems to have its arguments behind it. Folders may have blanks in their names.
fn has_arguments(program: &str) -> bool {
    program.trim().split_once(char::is_whitespace).is_some_and(|(_, behind)| !behind.contains(['/', '\\']))
}

struct Entry<'a> {
    source: &'a Path,
    name: &'a str,
    members: &'a [(String, Value)],
    seen: Vec<&'static str>,
}

impl<'a> Entry<'a> {
    fn wrong(&self, member: &str, message: impl Into<String>) -> Problem {
        Problem::error(self.source, message).of_server(self.name).of_member(member)
    }

    /// A member that has a value other than `null`.
    fn get(&mut self, member: &'static str) -> Result<Option<&'a Value>, Problem> {
        self.seen.push(member);
        let mut all = self.members.iter().filter(|(name, _)| name == member);
        let first = all.next().map(|(_, value)| value);
        if all.next().is_some() {
            return Err(self.wrong(member, "is there twice"));
        }
        Ok(first.filter(|value| !value.is_null()))
    }

    fn text(&mut self, member: &'static str) -> Result<Option<String>, Problem> {
        match self.get(member)? {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(self.wrong(member, "must be a string")),
        }
    }

    fn flag(&mut self, member: &'static str) -> Result<Option<bool>, Problem> {
        match self.get(member)? {
            None => Ok(None),
            Some(Value::Bool(set)) => Ok(Some(*set)),
            Some(_) => Err(self.wrong(member, "must be true or false")),
        }
    }

    /// The first of several synonyms that is there, and its name.
    fn any_text(&mut self, members: &[&'static str]) -> Result<Option<(&'static str, String)>, Problem> {
        let mut found = None;
        for member in members {
            if let Some(text) = self.text(member)? {
                found.get_or_insert((*member, text));
            }
        }
        Ok(found)
    }

    fn transport(&mut self) -> Result<Option<Declared>, Problem> {
        let Some((member, text)) = self.any_text(&["type", "transport"])? else { return Ok(None) };
        match text.as_str() {
            "stdio" | "local" => Ok(Some(Declared::Stdio)),
            "http" | "streamable-http" | "streamableHttp" | "streamable_http" => {
                Ok(Some(Declared::Url(UrlTransport::Auto)))
            }
            "sse" => Ok(Some(Declared::Url(UrlTransport::Sse))),
            "ws" | "websocket" => Ok(Some(Declared::Url(UrlTransport::WebSocket))),
            _ => Err(self.wrong(member, "must be stdio, http, streamable-http, sse, ws or websocket")),
        }
    }

    fn launch(&mut self) -> Result<Launch, Problem> {
        let transport = self.transport()?;
        let command = self.text("command")?;
        let url = self.any_text(&["url", "serverUrl"])?;
        match (transport, command, url) {
            (_, Some(_), Some((member, _))) => {
                Err(self.wrong(member, "cannot stand beside \"command\": a server has one of the two"))
            }
            (Some(Declared::Stdio) | None, Some(program), None) => self.command(program),
            (Some(Declared::Stdio), None, _) => {
                Err(self.wrong("command", "is missing, and the type wants it"))
            }
            (Some(_), Some(_), None) => Err(self.wrong("command", "has no place in an entry of this type")),
            (Some(_), None, None) => Err(self.wrong("url", "is missing, and the type wants it")),
            (None, None, None) => Err(self.wrong("command", "is missing, and so is \"url\"")),
            (None, None, Some((member, url))) => self.remote(None, member, url),
            (Some(Declared::Url(transport)), None, Some((member, url))) => {
                self.remote(Some(transport), member, url)
            }
        }
    }

    fn command(&mut self, program: String) -> Result<Launch, Problem> {
        if program.trim().is_empty() {
            return Err(self.wrong("command", "is empty"));
        }
        let args = match self.get("args")? {
            None => Vec::new(),
            Some(Value::Array(args)) => args
                .iter()
                .map(|arg| plain_text(arg).ok_or_else(|| self.wrong("args", "must be a list of strings")))
                .collect::<Result<_, _>>()?,
            Some(_) => return Err(self.wrong("args", "must be a list of strings")),
        };
        let env = self.pairs("env")?;
        if let Some((name, _)) = env.iter().find(|(name, _)| name.is_empty() || name.contains(['=', '\0'])) {
            return Err(
                self.wrong("env", format!("{:?} cannot be the name of a variable", redact::word(name)))
            );
        }
        let cwd = self.text("cwd")?.map(PathBuf::from);
        let env_file = self.text("envFile")?.map(PathBuf::from);
        Ok(Launch::Command { program, args, env, cwd, env_file })
    }

    fn remote(
        &mut self,
        declared: Option<UrlTransport>,
        member: &str,
        url: String,
    ) -> Result<Launch, Problem> {
        let scheme = url.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
        let socket = matches!(scheme.as_deref(), Some("ws" | "wss"));
        // A URL that begins with a variable is checked once that is filled in.
        let known = socket || matches!(scheme.as_deref(), Some("http" | "https")) || url.starts_with("${");
        if !known {
            return Err(self.wrong(member, "must be an address that begins with http, https, ws or wss"));
        }
        let headers = self.pairs("headers")?;
        if let Some((name, _)) = headers.iter().find(|(name, value)| !is_header(name, value.reveal())) {
            return Err(self.wrong("headers", format!("{name:?} cannot be sent as a header")));
        }
        let transport = match declared {
            None if socket => UrlTransport::WebSocket,
            None => UrlTransport::Auto,
            Some(transport) if socket && transport != UrlTransport::WebSocket => {
                return Err(self.wrong(member, "is for WebSocket, and the type for something else"));
            }
            Some(transport) => transport,
        };
        Ok(Launch::Remote { transport, url, headers })
    }

    /// Names and values; those that are `null` are left out.
    fn pairs(&mut self, member: &'static str) -> Result<Vec<(String, Secret)>, Problem> {
        let pairs = match self.get(member)? {
            None => return Ok(Vec::new()),
            Some(Value::Object(pairs)) => pairs,
            Some(_) => return Err(self.wrong(member, "must be an object of strings")),
        };
        let mut read = Vec::new();
        for (name, value) in pairs.iter().filter(|(_, value)| !value.is_null()) {
            let text =
                plain_text(value).ok_or_else(|| self.wrong(member, format!("{name:?} must be a string")))?;
            read.push((name.clone(), Secret::new(text)));
        }
        Ok(read)
    }
}

/// A string, or a number or boolean that was meant as one.
fn plain_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(set) => Some(set.to_string()),
        _ => None,
    }
}

/// True if HTTP can send it.
fn is_header(name: &str, value: &str) -> bool {
    is_token(name) && !value.chars().any(|c| c.is_control() && c != '\t')
}
