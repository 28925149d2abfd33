//! Reading `mcp.json` and its relatives: JSON with comments and trailing commas, members in the order of the file.

use std::io;
use std::path::Path;

use jsonc_parser::ast::{self, Object};
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use refmcp_transport::file::{open_regular, read_limited};
use serde_json::Value;

use super::{Problem, Servers, entry, input, usual_files};
use crate::args::{UsageError, sha256_hex, usage};

/// Bytes of the longest configuration file that is read.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// Some editors put it in front of a text in UTF-8.
pub(crate) const BYTE_ORDER_MARK: char = '\u{feff}';

/// Hosts read comments and trailing commas, some of them; nothing else that is not JSON.
pub(crate) const SYNTAX: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// Reads those of these files that exist. Where two name the same server, the first counts. A file in which a host keeps
/// other settings as well need not list servers.
pub(crate) fn read_all<P: AsRef<Path>>(files: &[P]) -> Servers {
    let mut all = Servers::default();
    for file in files.iter().map(AsRef::as_ref) {
        if file.symlink_metadata().is_ok() {
            let parse =
                if is_for_servers(file) { parse } else { |text: &str, file: &Path| parse_any(text, file).0 };
            all.add(text_of(file).map_or_else(Servers::of_problem, |text| hashed(parse(&text, file), &text)));
        }
    }
    all
}

/// Whether a usual file is for servers and nothing else, by its name.
fn is_for_servers(file: &Path) -> bool {
    file.file_name().is_some_and(|name| name == "mcp.json" || name == ".mcp.json")
}

/// Reads a file that has to list servers.
pub(crate) fn read(file: &Path) -> Servers {
    text_of(file).map_or_else(Servers::of_problem, |text| hashed(parse(&text, file), &text))
}

/// The servers of this file, or those of the usual files.
pub(crate) fn read_named(file: Option<&Path>) -> Servers {
    file.map_or_else(|| read_all(&usual_files()), read)
}

/// Fails for a file that is not there, which a person has named.
pub(crate) fn check_exists(file: &Path) -> Result<(), UsageError> {
    if file.exists() { Ok(()) } else { Err(usage!("there is no file {}", file.display())) }
}

/// Reads the text of a configuration file that has to list servers; `source` is what problems call it.
pub(super) fn parse(text: &str, source: &Path) -> Servers {
    let (mut found, listed) = parse_any(text, source);
    if !listed && found.problems.is_empty() {
        let what = "lists no servers: it has neither \"mcpServers\" nor \"servers\"; write \
                    {\"mcpServers\": {\"NAME\": {\"command\": \"PROGRAM\", \"args\": []}}}, or \"url\" in place of \"command\"";
        found.problems.push(Problem::error(source, what));
    }
    found
}

/// What the text names, and whether it has a list of servers.
fn parse_any(text: &str, source: &Path) -> (Servers, bool) {
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let wrong = |why: String| Problem::error(source, format!("is not a list of servers: {why}"));
    let mut found = Servers::default();
    match parse_to_ast(text, &CollectOptions::default(), &SYNTAX).map(|parsed| parsed.value) {
        Ok(Some(ast::Value::Object(top))) => {
            let listed = read_members(&mut found, source, top);
            return (found, listed);
        }
        Ok(Some(_)) => found.problems.push(wrong("it is no object".to_owned())),
        Ok(None) => found.problems.push(wrong("it is empty".to_owned())),
        Err(error) => found.problems.push(Problem::error(source, format!("is not valid JSON: {error}"))),
    }
    (found, false)
}

/// Remembers which text servers were read from.
fn hashed(mut found: Servers, text: &str) -> Servers {
    let sha256 = sha256_hex(text.as_bytes());
    found.servers.iter_mut().for_each(|entry| entry.source_sha256.clone_from(&sha256));
    found
}

fn read_members(found: &mut Servers, source: &Path, top: Object<'_>) -> bool {
    let mut listed = false;
    for member in top.properties {
        match (member.name.into_string().as_str(), member.value) {
            (name @ ("mcpServers" | "servers"), value) => {
                listed = true;
                read_servers(found, source, name, value);
            }
            ("inputs", value) => read_inputs(found, source, value.into()),
            // The settings of some editors hold everything, and the servers one step further in.
            ("mcp", ast::Value::Object(inner)) => listed |= read_members(found, source, inner),
            _ => {}
        }
    }
    listed
}

fn read_servers(found: &mut Servers, source: &Path, member: &str, value: ast::Value<'_>) {
    let ast::Value::Object(entries) = value else {
        found.problems.push(Problem::error(source, "must be an object of servers").of_member(member));
        return;
    };
    for server in entries.properties {
        let name = server.name.into_string();
        let read = match server.value {
            _ if name.trim().is_empty() => {
                Err(Problem::error(source, "a server needs a name").of_member(member))
            }
            _ if found.get(&name).is_some() => {
                Err(Problem::error(source, "is there twice; the first one counts").of_server(&name))
            }
            ast::Value::Object(entry) => {
                let members = entry.properties.into_iter();
                let members: Vec<(String, Value)> =
                    members.map(|member| (member.name.into_string(), member.value.into())).collect();
                entry::read(source, &name, &members, &mut found.problems)
            }
            _ => Err(Problem::error(source, "must be an object").of_server(&name)),
        };
        match read {
            Ok(entry) => found.servers.push(entry),
            Err(problem) => found.problems.push(problem),
        }
    }
}

fn read_inputs(found: &mut Servers, source: &Path, value: Value) {
    let Value::Array(listed) = value else {
        found.problems.push(Problem::error(source, "must be a list").of_member("inputs"));
        return;
    };
    for (at, value) in listed.iter().enumerate() {
        match input::read(source, at, value) {
            Ok(input) if found.inputs.iter().any(|other| other.id == input.id) => {
                let problem =
                    Problem::error(source, format!("{:?} is there twice; the first one counts", input.id));
                found.problems.push(problem.of_member(&format!("inputs[{at}].id")));
            }
            Ok(input) => found.inputs.push(input),
            Err(problem) => found.problems.push(problem),
        }
    }
}

/// The text of a regular file that not every user can write.
pub(super) fn text_of(path: &Path) -> Result<String, Problem> {
    let cannot = |error: io::Error| match error.kind() {
        io::ErrorKind::InvalidInput | io::ErrorKind::FileTooLarge => {
            Problem::error(path, format!("is {error}"))
        }
        _ => Problem::error(path, format!("cannot be read: {error}")),
    };
    let file = open_regular(path).map_err(cannot)?;
    if is_writable_by_all(&file.metadata().map_err(cannot)?) {
        let why = "can be written by every user of this machine, who could have any program started; it is not used \
                   until only its owner can write it (chmod o-w)";
        return Err(Problem::error(path, why));
    }
    let bytes = read_limited(file, MAX_FILE_BYTES).map_err(cannot)?;
    String::from_utf8(bytes).map_err(|_| Problem::error(path, "is not UTF-8"))
}

#[cfg(unix)]
fn is_writable_by_all(facts: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    facts.mode() & 0o002 != 0
}

#[cfg(not(unix))]
fn is_writable_by_all(_: &std::fs::Metadata) -> bool {
    false
}
