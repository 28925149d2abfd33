//! The files of a directory as prompts.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::PathBuf;

use cap_std::fs::{Dir, DirEntry};
use notify::RecursiveMode;
use refmcp_server::{Catalog, Prompt, Server};

use super::template::{FileFault, Template, is_name};
use crate::ReferenceError;
use crate::directory_watcher::DirectoryWatcher;

/// Files that become prompts at the most.
const MAX_FILES: usize = 1000;
/// The largest file that becomes one.
const MAX_FILE_BYTES: usize = 256 << 10;
/// The most that all files may have together.
const MAX_TOTAL_BYTES: usize = 16 << 20;

/// A watched directory that is not served yet.
pub(crate) struct UnservedPrompts {
    dir: Dir,
    watcher: DirectoryWatcher,
}

/// The prompt files of a running server.
struct PromptFiles {
    dir: Dir,
    /// The server's own prompts: a file of the same name replaces one, and it is back when the file is gone.
    builtin: BTreeMap<String, Prompt>,
    /// The prompts that are offered, each with its file.
    offered: BTreeMap<String, Offered>,
    /// What is wrong with files, as the log has it: the same fault is not logged again when another file changes.
    faults: BTreeMap<String, FileFault>,
}

#[derive(Debug, Clone, PartialEq)]
struct Offered {
    file: String,
    template: Template,
}

/// What a directory has in it.
#[derive(Default)]
struct Scan {
    /// Readable prompts by name.
    found: BTreeMap<String, Offered>,
    /// Files that are no prompts, and the names they would have.
    faults: BTreeMap<String, (FileFault, Option<String>)>,
}

impl UnservedPrompts {
    pub(crate) fn open(path: PathBuf) -> Result<Self, ReferenceError> {
        let (dir, watcher) = DirectoryWatcher::open("prompts", path, RecursiveMode::NonRecursive)?;
        Ok(Self { dir, watcher })
    }

    /// Reads the files, and again whenever they change.
    pub(crate) fn serve(self, server: &Server) -> Result<(), ReferenceError> {
        let catalog = server.catalog();
        let builtin = catalog.prompts().map(|prompt| (prompt.name().to_owned(), prompt.clone())).collect();
        drop(catalog);
        let mut files =
            PromptFiles { dir: self.dir, builtin, offered: BTreeMap::new(), faults: BTreeMap::new() };
        files.refresh(server);
        self.watcher.on_change(server, move |server| files.refresh(server))
    }
}

impl PromptFiles {
    /// Brings the server's list up to date and tells clients if it has changed.
    fn refresh(&mut self, server: &Server) {
        let mut scan = match scan(&self.dir) {
            Ok(scan) => scan,
            Err(error) => {
                tracing::warn!(
                    "the directory of prompts cannot be read, so the prompts stay as they are: {error}"
                );
                return;
            }
        };
        self.keep_broken(&mut scan);
        let (offered, builtin) = (&self.offered, &self.builtin);
        let mut taken = Vec::new();
        server.change_lists(|lists| {
            scan.found.retain(|name, new| {
                let free =
                    offered.contains_key(name) || builtin.contains_key(name) || !lists.has_prompt(name);
                if !free {
                    taken.push((new.file.clone(), name.clone()));
                }
                free
            });
            for name in offered.keys().filter(|name| !scan.found.contains_key(*name)) {
                withdraw(lists, name, builtin);
            }
            for (name, new) in scan.found.iter().filter(|(name, new)| offered.get(*name) != Some(*new)) {
                lists.add_prompt(new.template.clone().prompt(name));
            }
        });
        for (file, name) in taken {
            let what = format!(
                "a client has added a prompt `{name}`; remove it with remove_prompt, or rename the file"
            );
            scan.faults.insert(file, (FileFault::of_file(what), Some(name)));
        }
        self.log(&scan);
        self.offered = scan.found;
        self.faults = scan.faults.into_iter().map(|(file, (error, _))| (file, error)).collect();
    }

    /// A file that was a prompt and cannot be read any more stays the prompt it was, until it is mended or deleted.
    fn keep_broken(&self, scan: &mut Scan) {
        for (file, (_, name)) in &scan.faults {
            let Some(name) = name else { continue };
            if let Some(before) = self.offered.get(name).filter(|before| before.file == *file) {
                scan.found.insert(name.clone(), before.clone());
            }
        }
    }

    /// Says what is new: files that are wrong, files that are right again, and arguments without a use.
    fn log(&self, scan: &Scan) {
        for (file, (error, name)) in &scan.faults {
            if self.faults.get(file) == Some(error) {
                continue;
            }
            let name = name.as_deref().unwrap_or_default();
            let instead = match scan.found.get(name) {
                Some(before) if before.file == *file => "the prompt stays as it was before the change",
                Some(_) => "this file is left out",
                None if self.builtin.contains_key(name) => "the built-in prompt of this name stays",
                None => "this file is left out",
            };
            tracing::warn!("prompt file {file}: {error} ({instead})");
        }
        for file in self.faults.keys().filter(|file| !scan.faults.contains_key(*file)) {
            if scan.found.values().any(|found| found.file == **file) {
                tracing::info!("prompt file {file}: is right now, and offered");
            }
        }
        for (name, Offered { file, template }) in &scan.found {
            if self.offered.get(name).is_none_or(|before| before.template != *template) {
                for (argument, line) in template.unused() {
                    tracing::warn!(
                        "prompt file {file}: line {line}: the argument `{argument}` is described and used nowhere; \
                         write {{{{{argument}}}}} in the text, or remove it (the prompt is offered)"
                    );
                }
            }
        }
    }
}

/// Removes the prompt of a file; a built-in one that it had replaced is there again, in its place.
fn withdraw(lists: &mut Catalog, name: &str, builtin: &BTreeMap<String, Prompt>) {
    match builtin.get(name) {
        Some(prompt) => lists.add_prompt(prompt.clone()),
        None => {
            lists.remove_prompt(name);
        }
    }
}

/// Reads every file that should be a prompt.
fn scan(dir: &Dir) -> io::Result<Scan> {
    let mut scan = Scan::default();
    // A file that is gone before it was looked at is as if it had never been there.
    let named = |entry: DirEntry| Some((entry.file_name().into_string().ok()?, entry));
    let mut entries: Vec<(String, DirEntry)> = dir.entries()?.flatten().filter_map(named).collect();
    entries.sort_by(|(one, _), (other, _)| one.cmp(other));
    let mut claimed: BTreeMap<String, String> = BTreeMap::new();
    let mut total = 0;
    for (file, entry) in entries {
        // Editors keep files of their own beside the one that is edited, with a dot in front.
        let Some((name, "md" | "txt")) = file.rsplit_once('.').filter(|_| !file.starts_with('.')) else {
            continue;
        };
        let (name, other) = (name.to_owned(), claimed.get(name));
        let template = if !is_name(&name) {
            let what = "the name of the file is the prompt's: rename it, with letters, digits, '_', '-' and '.', at \
                        most 128";
            Err((FileFault::of_file(what), None))
        } else if let Some(other) = other {
            Err((FileFault::of_file(format!("{other} has the same name; rename one of them")), None))
        } else if claimed.len() == MAX_FILES {
            let what = format!("there are more than {MAX_FILES} prompt files; remove some");
            Err((FileFault::of_file(what), None))
        } else {
            claimed.insert(name.clone(), file.clone());
            let text = read(dir, &entry, &file, &mut total);
            text.and_then(|text| Template::parse(&text)).map_err(|error| (error, Some(name.clone())))
        };
        match template {
            Ok(template) => {
                scan.found.insert(name, Offered { file, template });
            }
            Err(error) => {
                scan.faults.insert(file, error);
            }
        }
    }
    Ok(scan)
}

/// The text of a file; `total` counts the bytes of all.
fn read(dir: &Dir, entry: &DirEntry, file: &str, total: &mut usize) -> Result<String, FileFault> {
    if !entry.file_type().is_ok_and(|kind| kind.is_file()) {
        return Err(FileFault::of_file("this is no plain file; copy the file here instead of linking to it"));
    }
    let unreadable = |error: io::Error| FileFault::of_file(format!("the file cannot be read: {error}"));
    let mut bytes = Vec::new();
    let most = u64::try_from(MAX_FILE_BYTES).unwrap_or(u64::MAX);
    dir.open(file).map_err(unreadable)?.take(most + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() > MAX_FILE_BYTES {
        let most = MAX_FILE_BYTES >> 10;
        return Err(FileFault::of_file(format!("the file is larger than {most} KiB; shorten it")));
    }
    *total += bytes.len();
    if *total > MAX_TOTAL_BYTES {
        let most = MAX_TOTAL_BYTES >> 20;
        return Err(FileFault::of_file(format!(
            "the prompt files are larger than {most} MiB together; remove some"
        )));
    }
    String::from_utf8(bytes).map_err(|error| {
        let before = error.as_bytes().get(..error.utf8_error().valid_up_to()).unwrap_or_default();
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        FileFault::new(line, "this is not UTF-8; save the file as UTF-8")
    })
}
