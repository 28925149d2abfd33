//! The files of a directory as prompts.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::PathBuf;

use cap_std::fs::{Dir, DirEntry};
use notify::RecursiveMode;
use refmcp_server::{Change, Server};

use super::template::{Template, is_name};
use crate::ReferenceError;
use crate::watch::Watched;

/// Files that become prompts at the most.
const MOST_FILES: usize = 1000;
/// The largest file that becomes one.
const MOST_BYTES: u64 = 256 << 10;

/// A directory that is watched but not offered yet.
pub(crate) struct Opened {
    files: Files,
    watched: Watched,
}

struct Files {
    dir: Dir,
    listed: BTreeMap<String, Template>,
}

impl Opened {
    pub(crate) fn open(path: PathBuf) -> Result<Self, ReferenceError> {
        let (dir, watched) = Watched::open("prompts", path, RecursiveMode::NonRecursive)?;
        Ok(Self { files: Files { dir, listed: BTreeMap::new() }, watched })
    }

    /// Reads the files, and again whenever they change.
    pub(crate) fn serve(self, server: &Server) -> Result<(), ReferenceError> {
        let Self { mut files, watched } = self;
        files.refresh(server);
        watched.tell(server, move |server| files.refresh(server))
    }
}

impl Files {
    /// Brings the server's list up to date and tells if it has changed.
    fn refresh(&mut self, server: &Server) {
        let mut found = self.scan();
        let listed = &self.listed;
        server.change_lists(|lists| {
            found.retain(|name, _| {
                let free = listed.contains_key(name) || !lists.has_prompt(name);
                if !free {
                    tracing::warn!(name, "a prompt file is skipped: there is another prompt of this name");
                }
                free
            });
            if found == *listed {
                return None;
            }
            for name in listed.keys().filter(|name| !found.contains_key(*name)) {
                lists.remove_prompt(name);
            }
            for (name, template) in
                found.iter().filter(|(name, template)| listed.get(*name) != Some(*template))
            {
                lists.add_prompt(template.clone().prompt(name));
            }
            Some(Change::Prompts)
        });
        self.listed = found;
    }

    /// Every file that is a prompt, by name.
    fn scan(&self) -> BTreeMap<String, Template> {
        let mut found = BTreeMap::new();
        let Ok(entries) = self.dir.entries() else { return found };
        let mut entries: Vec<(String, DirEntry)> = entries
            .flatten()
            .filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry)))
            .collect();
        entries.sort_by(|(one, _), (other, _)| one.cmp(other));
        for (file, entry) in entries {
            let Some((name, "md" | "txt")) = file.rsplit_once('.') else { continue };
            let template = if !is_name(name) || name.starts_with('.') {
                Err("its name is not made of letters, digits, '_', '-' and '.'".to_owned())
            } else if found.contains_key(name) {
                Err("another file has the same name".to_owned())
            } else if found.len() == MOST_FILES {
                Err(format!("there are more than {MOST_FILES}"))
            } else {
                self.read(&entry, &file).and_then(|text| Template::parse(&text))
            };
            match template {
                Ok(template) => {
                    found.insert(name.to_owned(), template);
                }
                Err(why) => tracing::warn!(file, "a prompt file is skipped: {why}"),
            }
        }
        found
    }

    fn read(&self, entry: &DirEntry, file: &str) -> Result<String, String> {
        if !entry.file_type().is_ok_and(|kind| kind.is_file()) {
            return Err("it is no plain file".to_owned());
        }
        let mut text = String::new();
        let opened = self.dir.open(file).map_err(|fault| fault.to_string())?;
        opened.take(MOST_BYTES + 1).read_to_string(&mut text).map_err(|fault| fault.to_string())?;
        if u64::try_from(text.len()).is_ok_and(|size| size > MOST_BYTES) {
            return Err(format!("it is larger than {} KiB", MOST_BYTES >> 10));
        }
        Ok(text)
    }
}
