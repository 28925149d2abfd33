//! Rules about skills: their entries, their files and the methods of the extension.

use std::collections::{HashMap, HashSet};

use refmcp_proto::rule::{self, Rule};
use serde_json::Value;

use crate::auditor::checks::values::{Violation, base64_length, items, rules_of, text, violation_unless};
use crate::auditor::checks::{Check, Context};
use crate::auditor::conversation::{Request, State, declares};
use crate::auditor::message::Message;
use crate::verdict::Role;

pub(in crate::auditor::checks) static RULES: &[&Rule] = &[
    &rule::SKL_01,
    &rule::SKL_02,
    &rule::SKL_03,
    &rule::SKL_04,
    &rule::SKL_05,
    &rule::SKL_06,
    &rule::SKL_07,
    &rule::SKL_08,
    &rule::SKL_09,
    &rule::SKL_12,
    &rule::SKL_16,
    &rule::SKL_18,
    &rule::SKL_19,
    &rule::SKL_20,
    &rule::SKL_21,
    &rule::SKL_23,
    &rule::SKL_26,
    &rule::SKL_29,
    &rule::SKL_30,
    &rule::SKL_31,
    &rule::SKL_32,
    &rule::SKL_33,
];

const EXTENSION: [&str; 2] = ["extensions", "io.modelcontextprotocol/skills"];
const DIRECTORY_READ: [&str; 3] = ["extensions", "io.modelcontextprotocol/skills", "directoryRead"];

/// Files and bytes of a skill.
const MAX_FILES: usize = 512;
const MAX_BYTES: u64 = 16 << 20;

/// Bytes of URIs that are remembered.
const MAX_URIS: usize = 64 << 10;

/// Lists that are being read.
const MAX_READINGS: usize = 4;

#[derive(Debug, Default)]
pub(in crate::auditor::checks) struct Skills {
    /// The URIs of entries.
    entries: HashSet<String>,
    /// The sizes of files by their URIs.
    sizes: HashMap<String, u64>,
    uri_bytes: usize,
    /// Skills that skills/get refused, and files that were read with another size: they may have changed since they were
    /// listed, unless they are listed again as before.
    suspects: HashSet<String>,
    wrong_sizes: HashSet<String>,
    /// The URIs on the pages so far, by the cursor of the next page.
    readings: HashMap<String, HashSet<String>>,
}

impl Check for Skills {
    fn message(&mut self, message: &Message<'_>, context: &mut Context<'_>) {
        if let Some((method, params)) = message.request().filter(|_| message.from == Role::Client) {
            asked(method, params, context);
        } else if let Some((request, result)) = message.result().filter(|_| message.from == Role::Server) {
            self.answered(request, result, context);
        } else if let Some((request, error)) = message.error().filter(|_| message.from == Role::Server) {
            self.refused(request, error.get("code").and_then(Value::as_i64), context);
        }
    }
}

impl Skills {
    fn answered(&mut self, request: &Request, result: &Value, context: &mut Context<'_>) {
        match &*request.method {
            "initialize" | "server/discover" => {
                let capabilities = result.get("capabilities").unwrap_or(&Value::Null);
                if declares(capabilities, &EXTENSION) {
                    let has_resources = capabilities.get("resources").is_some_and(Value::is_object);
                    let what = "skills are declared without resources";
                    context.require(&rule::SKL_02, has_resources, what, "declare resources too");
                }
            }
            "skills/list" if is_declared(context.state) => {
                context.kept(&rule::SKL_01);
                judge_hints(request, result, context);
                let skills = items(result, "skills");
                for skill in skills {
                    self.judge_skill(skill, context);
                }
                self.read_page(request, result, skills, context);
            }
            "skills/get" if is_declared(context.state) => {
                context.kept(&rule::SKL_01);
                context.kept(&rule::SKL_30);
                judge_hints(request, result, context);
                let skill = result.get("skill").filter(|skill| skill.is_object());
                let is_shaped = skill.is_some() && result.get("nextCursor").is_none();
                let what = "a result of skills/get without a skill, or with pages";
                context.require(&rule::SKL_32, is_shaped, what, "put the entry into skill");
                if let Some(skill) = skill {
                    self.judge_skill(skill, context);
                }
            }
            "resources/directory/read" => {
                context.kept(&rule::SKL_03);
                let directory = text(&request.params, "uri").unwrap_or_default();
                let is_child = |resource: &Value| {
                    let below = text(resource, "uri").and_then(|uri| uri.strip_prefix(directory));
                    below
                        .and_then(|rest| rest.strip_prefix('/'))
                        .is_some_and(|name| !name.is_empty() && !name.contains('/'))
                };
                let are_children = items(result, "resources").iter().all(is_child);
                let what = "a directory with something that is no direct child of it";
                context.require(&rule::SKL_33, are_children, what, "list direct children alone");
            }
            "resources/list" => {
                for resource in items(result, "resources") {
                    if text(resource, "uri").is_some_and(|uri| self.entries.contains(uri)) {
                        let is_markdown = text(resource, "mimeType") == Some("text/markdown");
                        let what = "the resource of a SKILL.md that is not text/markdown";
                        context.require(&rule::SKL_12, is_markdown, what, "set mimeType to text/markdown");
                    }
                }
            }
            "resources/read" => {
                for contents in items(result, "contents") {
                    self.judge_contents(contents, context);
                }
            }
            _ => {}
        }
    }

    fn refused(&mut self, request: &Request, code: Option<i64>, context: &mut Context<'_>) {
        let is_unknown = code == Some(-32601);
        match &*request.method {
            method @ ("skills/list" | "skills/get") if is_unknown && is_declared(context.state) => {
                let what = format!("{method} does not exist at a server that declares skills");
                context.broken(&rule::SKL_01, what, "serve skills/list and skills/get");
            }
            "resources/directory/read"
                if is_unknown && context.state.server.declares(&DIRECTORY_READ) == Some(true) =>
            {
                let what = "resources/directory/read does not exist at a server with directoryRead";
                context.broken(&rule::SKL_03, what, "serve it, or do not declare directoryRead");
            }
            "skills/get" if code == Some(-32602) => {
                if let Some(uri) = text(&request.params, "uri").filter(|uri| self.entries.contains(*uri)) {
                    self.suspects.insert(uri.to_owned());
                }
            }
            _ => {}
        }
    }

    /// Judges the entry of a skill.
    fn judge_skill(&mut self, skill: &Value, context: &mut Context<'_>) {
        let uri = text(skill, "uri").unwrap_or_default();
        let root = uri.strip_suffix("/SKILL.md");
        context.require(
            &rule::SKL_08,
            root.is_some(),
            "a skill whose uri does not end in /SKILL.md",
            "name the skill by its SKILL.md",
        );
        let is_skill_uri = uri.starts_with("skill://");
        let what = "a skill under another scheme than skill";
        context.require(&rule::SKL_06, is_skill_uri, what, "serve skills under skill://");
        if let Some(path) = root.and_then(|root| root.split_once("://")).map(|(_, path)| path) {
            let what = "a skill whose URI has characters that its segments cannot have";
            let expected = "encode what stands before the name of the skill";
            context.require(&rule::SKL_09, is_path(path), what, expected);
        }
        let frontmatter = skill.get("frontmatter").unwrap_or(&Value::Null);
        let name = text(frontmatter, "name");
        let is_described = name.is_some() && text(frontmatter, "description").is_some();
        let what = "a skill without a name or a description in its frontmatter";
        context.require(&rule::SKL_05, is_described, what, "write both into the frontmatter of SKILL.md");
        if let (Some(name), Some(root)) = (name, root) {
            let is_named = root.rsplit('/').next() == Some(name) && is_skill_name(name);
            let what = "a skill whose directory or name is not as names of skills are";
            let expected =
                "call the directory as the skill, with lower-case letters, digits and single hyphens";
            context.require(&rule::SKL_07, is_named, what, expected);
        }
        let is_dynamic = skill.get("resources").and_then(Value::as_str) == Some("dynamic");
        let files = skill.get("resources").and_then(Value::as_array);
        let what = "a skill whose resources are neither a list nor dynamic";
        let expected = "list the files, or say dynamic";
        context.require(&rule::SKL_16, files.is_some() || is_dynamic, what, expected);
        if self.suspects.remove(uri) && self.entries.contains(uri) {
            let what = "skills/get refused a skill that the server lists";
            context.broken(&rule::SKL_30, what, "answer for each skill that is served");
        }
        self.remember(uri, None);
        if let (Some(files), Some(root)) = (files, root) {
            self.judge_files(files, uri, root, context);
        }
    }

    fn judge_files(&mut self, files: &[Value], uri: &str, root: &str, context: &mut Context<'_>) {
        let mut uris = HashSet::new();
        let is_once = files.iter().filter_map(|file| text(file, "uri")).all(|uri| uris.insert(uri));
        let what = "a skill that lists a file twice, or not its SKILL.md";
        let is_whole = is_once && uris.contains(uri);
        context.require(&rule::SKL_18, is_whole, what, "list each file once, SKILL.md included");
        let is_below =
            |uri: &&str| uri.strip_prefix(root).is_some_and(|it| it.starts_with('/') && !it.contains("/../"));
        let what = "a skill that lists a file outside of its directory";
        context.require(&rule::SKL_19, uris.iter().all(is_below), what, "list files of the directory alone");
        context.judge(&rule::SKL_20, files.iter().find_map(file_violation));
        let size = |file: &Value| file.get("size").and_then(Value::as_u64);
        let total: u64 = files.iter().filter_map(size).fold(0, u64::saturating_add);
        let what = "a skill of more than 512 files or 16 MiB";
        let is_small = files.len() <= MAX_FILES && total <= MAX_BYTES;
        context.require(&rule::SKL_23, is_small, what, "make skills smaller");
        for file in files {
            if let (Some(uri), Some(size)) = (text(file, "uri"), size(file)) {
                if self.sizes.get(uri) == Some(&size) && self.wrong_sizes.remove(uri) {
                    let what = "a file of a skill with another size than its entry says";
                    let expected = "take size and digest of the bytes that resources/read returns";
                    context.broken(&rule::SKL_21, what, expected);
                }
                self.remember(uri, Some(size));
            }
        }
    }

    fn remember(&mut self, uri: &str, size: Option<u64>) {
        let is_known = self.entries.contains(uri) && size.is_none() || self.sizes.contains_key(uri);
        if !is_known {
            self.uri_bytes += uri.len();
        }
        if self.uri_bytes > MAX_URIS {
            return;
        }
        match size {
            Some(size) => {
                self.sizes.insert(uri.to_owned(), size);
            }
            None => {
                self.entries.insert(uri.to_owned());
            }
        }
    }

    /// What is read has the size of the entry.
    fn judge_contents(&mut self, contents: &Value, context: &mut Context<'_>) {
        let uri = text(contents, "uri").unwrap_or_default();
        let Some(size) = self.sizes.get(uri) else { return };
        let length = match (text(contents, "text"), text(contents, "blob")) {
            (Some(text), _) => text.len(),
            (None, Some(blob)) => base64_length(blob),
            _ => return,
        };
        if length as u64 == *size {
            context.kept(&rule::SKL_21);
        } else {
            self.wrong_sizes.insert(uri.to_owned());
        }
    }

    /// Each entry is on one page of a list.
    fn read_page(&mut self, request: &Request, result: &Value, skills: &[Value], context: &mut Context<'_>) {
        let before = match text(&request.params, "cursor") {
            None => Some(HashSet::new()),
            Some(cursor) => self.readings.remove(cursor),
        };
        let Some(mut seen) = before else { return };
        let uris = skills.iter().filter_map(|skill| text(skill, "uri"));
        let is_once = uris.filter(|uri| !seen.insert((*uri).to_owned())).count() == 0;
        let what = "a skill that is twice in one list";
        context.require(&rule::SKL_29, is_once, what, "list each skill once, whole on one page");
        let bytes: usize = seen.iter().map(String::len).sum();
        if let Some(next) = text(result, "nextCursor")
            && self.readings.len() < MAX_READINGS
            && bytes <= MAX_URIS
        {
            self.readings.insert(next.to_owned(), seen);
        }
    }
}

fn is_declared(state: &State) -> bool {
    state.server.declares(&EXTENSION) == Some(true)
}

fn asked(method: &str, params: &Value, context: &mut Context<'_>) {
    let names: &[&str] = match method {
        "skills/list" | "skills/get" => &EXTENSION,
        "resources/directory/read" => &DIRECTORY_READ,
        _ => return,
    };
    if let Some(declared) = context.state.server.declares(names) {
        let what = format!("{method} at a server that does not declare it");
        let expected = "call it once the server declares skills, and directoryRead for directories";
        context.require(&rule::SKL_04, declared, &what, expected);
    }
    if method == "skills/get" {
        let is_skill = text(params, "uri").is_some_and(|uri| uri.ends_with("/SKILL.md"));
        let what = "skills/get of something that is no SKILL.md";
        context.require(&rule::SKL_31, is_skill, what, "ask for the URI of a SKILL.md");
    }
}

/// Lists and entries say how they may be cached, where results do.
fn judge_hints(request: &Request, result: &Value, context: &mut Context<'_>) {
    if rules_of(request).is_some_and(|rules| rules.cache_hints) {
        let has_hints = result.get("ttlMs").is_some_and(Value::is_u64)
            && matches!(text(result, "cacheScope"), Some("public" | "private"));
        let what = "a result about skills without ttlMs or cacheScope";
        context.require(&rule::SKL_26, has_hints, what, "send ttlMs and cacheScope");
    }
}

/// Whether what stands before the name of a skill is a registered name with segments behind it.
fn is_path(path: &str) -> bool {
    let is_character = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=".contains(&byte);
    let mut segments = path.rsplit('/').skip(1).collect::<Vec<_>>().into_iter().rev();
    let first = segments.next().is_none_or(|first| !first.is_empty() && first.bytes().all(is_character));
    let is_other = |byte: u8| is_character(byte) || matches!(byte, b':' | b'@');
    first && segments.all(|segment| segment.bytes().all(is_other))
}

fn is_skill_name(name: &str) -> bool {
    let is_character = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=64).contains(&name.len())
        && name.bytes().all(is_character)
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--")
}

fn file_violation(file: &Value) -> Option<Violation> {
    let digest = text(file, "digest").and_then(|digest| digest.strip_prefix("sha256:"));
    let is_digest = digest.is_some_and(|digest| {
        digest.len() == 64 && digest.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    });
    let is_sized = file.get("size").is_some_and(Value::is_u64);
    let what = "a file of a skill without a size or a digest as digests are written";
    violation_unless(
        is_digest && is_sized,
        what,
        "send size, and sha256: with 64 lower-case hexadecimal digits",
    )
}
