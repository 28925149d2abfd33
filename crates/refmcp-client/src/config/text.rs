//! The text of a configuration file.

use std::path::Path;

use serde_json::Value;
use serde_json::value::RawValue;

use super::members::Members;
use super::problem::Problem;
use super::{Servers, entry, input, jsonc};

/// Reads the text of a configuration file; `source` is what problems call it. Comments and trailing commas are fine.
#[must_use]
pub fn parse(text: &str, source: &Path) -> Servers {
    let mut found = Servers::default();
    match parse_into(&mut found, text, source) {
        Ok(true) => {}
        Ok(false) => {
            found.problems.push(Problem::error(source, "has neither \"mcpServers\" nor \"servers\""));
        }
        Err(problem) => found.problems.push(problem),
    }
    found
}

/// The same, for a file that may be there for something else: without a list, nothing is wrong with it.
pub(super) fn parse_if_listed(text: &str, source: &Path) -> Servers {
    let mut found = Servers::default();
    if let Err(problem) = parse_into(&mut found, text, source) {
        found.problems.push(problem);
    }
    found
}

/// Adds what the text names; whether it has a list of servers.
fn parse_into(found: &mut Servers, text: &str, source: &Path) -> Result<bool, Problem> {
    let text = jsonc::plain(text);
    let top = serde_json::from_str::<Members<Box<RawValue>>>(&text)
        .map_err(|fault| Problem::error(source, format!("is not a list of servers: {fault}")))?;
    let mut listed = false;
    for (member, value) in &top.0 {
        match member.as_str() {
            "mcpServers" | "servers" => {
                listed = true;
                servers(found, source, member, value);
            }
            "inputs" => inputs(found, source, value),
            // The settings of some editors hold everything, and the servers one step further in.
            "mcp" if serde_json::from_str::<Members<&RawValue>>(value.get()).is_ok() => {
                listed |= parse_into(found, value.get(), source)?;
            }
            _ => {}
        }
    }
    Ok(listed)
}

fn servers(found: &mut Servers, source: &Path, member: &str, value: &RawValue) {
    let Ok(entries) = serde_json::from_str::<Members<Box<RawValue>>>(value.get()) else {
        found.problems.push(Problem::error(source, "must be an object of servers").of_member(member));
        return;
    };
    for (name, value) in entries.0 {
        let read = match serde_json::from_str::<Members<Value>>(value.get()) {
            _ if name.trim().is_empty() => {
                Err(Problem::error(source, "a server needs a name").of_member(member))
            }
            _ if found.get(&name).is_some() => {
                Err(Problem::error(source, "is there twice; the first one counts").of_server(&name))
            }
            Ok(members) => entry::read(source, &name, &members.0, &mut found.problems),
            Err(fault) if value.get().starts_with('{') => {
                Err(Problem::error(source, format!("cannot be read: {fault}")).of_server(&name))
            }
            Err(_) => Err(Problem::error(source, "must be an object").of_server(&name)),
        };
        match read {
            Ok(entry) => found.servers.push(entry),
            Err(problem) => found.problems.push(problem),
        }
    }
}

fn inputs(found: &mut Servers, source: &Path, value: &RawValue) {
    let Ok(listed) = serde_json::from_str::<Vec<Value>>(value.get()) else {
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
