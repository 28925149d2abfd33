//! The files of a directory as resources.
//!
//! Every access goes through a [`Dir`], which follows no path and no symbolic link out of the directory, whatever
//! happens to the files meanwhile.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use cap_std::fs::Dir;
use notify::RecursiveMode;
use parking_lot::Mutex;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use refmcp_server::model::{Annotations, ResourceContents};
use refmcp_server::{CallError, Resource, ResourceTemplate, Server, Timestamp, UriTemplateError};

use super::file_type::FileType;
use crate::ReferenceError;
use crate::directory_watcher::DirectoryWatcher;
use crate::media::base64;

/// What every URI begins with.
const PREFIX: &str = "file:///dir/";
/// Files that are listed at the most; others can still be read.
const MAX_FILES: usize = 10_000;
/// How many directories inside each other are listed.
const MAX_DEPTH: usize = 16;
/// The largest file that is read.
const MAX_FILE_BYTES: u64 = 8 << 20;

/// A watched directory that is not served yet.
pub(crate) struct UnservedResources {
    files: Arc<Files>,
    watcher: DirectoryWatcher,
}

struct Files {
    dir: Dir,
    listed: Mutex<Listing>,
}

/// Files by their path, with what shows that they have changed.
type Listing = BTreeMap<String, Seen>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    size: u64,
    modified: SystemTime,
}

/// Why a file is not read.
enum Unread {
    Missing,
    TooLarge,
}

impl UnservedResources {
    pub(crate) fn open(path: PathBuf) -> Result<Self, ReferenceError> {
        let (dir, watcher) = DirectoryWatcher::open("resources", path, RecursiveMode::Recursive)?;
        Ok(Self { files: Arc::new(Files { dir, listed: Mutex::default() }), watcher })
    }

    /// The family that all of the files belong to, listed or not.
    pub(crate) fn template(&self) -> Result<ResourceTemplate, UriTemplateError> {
        let files = self.files.clone();
        let template =
            ResourceTemplate::new(format!("{PREFIX}{{+path}}"), "files", move |_, uri, values| {
                let path = values.get("path").cloned().unwrap_or_default();
                read(files.clone(), path, uri)
            })?;
        let files = self.files.clone();
        let template = template.complete("path", move |_, typed| {
            let suggested = typed.among(files.listed.lock().keys().map(String::as_str));
            async move { suggested }
        });
        Ok(template.title("Files").description("The files of the directory that the server was started with"))
    }

    /// Lists the files, and again whenever they change.
    pub(crate) fn serve(self, server: &Server) -> Result<(), ReferenceError> {
        let Self { files, watcher } = self;
        files.refresh(server);
        watcher.on_change(server, move |server| files.refresh(server))
    }
}

impl Files {
    /// Brings the server's list up to date and tells of what has changed.
    fn refresh(self: &Arc<Self>, server: &Server) {
        let found = self.scan();
        let mut listed = self.listed.lock();
        let gone: Vec<&String> = listed.keys().filter(|path| !found.contains_key(*path)).collect();
        let differs: Vec<_> = found.iter().filter(|(path, seen)| listed.get(*path) != Some(*seen)).collect();
        server.change_lists(|lists| {
            for path in &gone {
                lists.remove_resource(&uri(path));
            }
            for (path, seen) in &differs {
                lists.add_resource(self.resource(path, **seen));
            }
        });
        // Also what came or went: many programs save a file by putting another in its place.
        let changed: Vec<String> =
            differs.iter().map(|(path, _)| *path).chain(gone).map(|path| uri(path)).collect();
        *listed = found;
        drop(listed);
        for uri in changed {
            server.resource_updated(uri);
        }
    }

    fn resource(self: &Arc<Self>, path: &str, seen: Seen) -> Resource {
        let (files, own_path) = (self.clone(), path.to_owned());
        let name = path.rsplit('/').next().unwrap_or(path);
        let resource =
            Resource::new(uri(path), name, move |_| read(files.clone(), own_path.clone(), uri(&own_path)));
        // Files from before 1970 are as old as that.
        let modified = Timestamp::default() + seen.modified.duration_since(UNIX_EPOCH).unwrap_or_default();
        let modified = Annotations { last_modified: Some(modified.to_rfc3339()), ..Annotations::default() };
        let resource = resource.title(path).size(seen.size).annotations(modified);
        match FileType::from_path(path).mime_type() {
            Some(mime_type) => resource.mime_type(mime_type),
            None => resource,
        }
    }

    /// Every plain file, up to the limits.
    fn scan(&self) -> Listing {
        let mut found = Listing::new();
        let mut complete = true;
        if let Ok(root) = self.dir.try_clone() {
            let mut open = vec![(root, String::new(), 0)];
            while let Some((dir, prefix, depth)) = open.pop() {
                let Ok(entries) = dir.entries() else { continue };
                // What cannot be looked at, or is gone before it was, is left out.
                for entry in entries.flatten() {
                    let (Ok(name), Ok(kind)) = (entry.file_name().into_string(), entry.file_type()) else {
                        continue;
                    };
                    let path = format!("{prefix}{name}");
                    if !is_plain(&path) {
                        continue;
                    }
                    if kind.is_dir() && depth + 1 < MAX_DEPTH {
                        open.extend(entry.open_dir().map(|dir| (dir, format!("{path}/"), depth + 1)));
                    } else if kind.is_file() && found.len() < MAX_FILES {
                        let Ok(meta) = entry.metadata() else { continue };
                        let modified = meta
                            .modified()
                            .map_or(SystemTime::UNIX_EPOCH, cap_std::time::SystemTime::into_std);
                        found.insert(path, Seen { size: meta.len(), modified });
                    } else {
                        complete &= !kind.is_dir() && !kind.is_file();
                    }
                }
            }
        }
        if !complete {
            tracing::warn!(
                MAX_FILES,
                MAX_DEPTH,
                "the directory of resources is larger than what is listed of it"
            );
        }
        found
    }

    fn bytes(&self, path: &str) -> Result<Vec<u8>, Unread> {
        if !is_plain(path) {
            return Err(Unread::Missing);
        }
        let missing = |_: io::Error| Unread::Missing;
        // Opening a pipe would wait for its other end.
        if !self.dir.metadata(path).map_err(missing)?.is_file() {
            return Err(Unread::Missing);
        }
        let mut bytes = Vec::new();
        let file = self.dir.open(path).map_err(missing)?;
        file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(missing)?;
        if u64::try_from(bytes.len()).is_ok_and(|size| size <= MAX_FILE_BYTES) {
            Ok(bytes)
        } else {
            Err(Unread::TooLarge)
        }
    }
}

async fn read(files: Arc<Files>, path: String, uri: String) -> Result<ResourceContents, CallError> {
    let kind = FileType::from_path(&path);
    let bytes = tokio::task::spawn_blocking(move || files.bytes(&path)).await;
    match bytes {
        Ok(Ok(bytes)) => Ok(match kind.read(bytes) {
            Ok((text, mime_type)) => ResourceContents::text(uri, text).mime_type(mime_type),
            Err((bytes, mime_type)) => ResourceContents::blob(uri, base64(&bytes)).mime_type(mime_type),
        }),
        Ok(Err(Unread::TooLarge)) => Err(CallError::new(format!(
            "the resource is larger than {} MiB, the most that is read",
            MAX_FILE_BYTES >> 20
        ))),
        Ok(Err(Unread::Missing)) => Err(CallError::resource_not_found(uri)),
        Err(_) => Err(CallError::new("the resource cannot be read")),
    }
}

/// Whether a path goes down and nowhere else, past nothing hidden.
fn is_plain(path: &str) -> bool {
    !path.contains(['\\', '\0']) && path.split('/').all(|part| !part.is_empty() && !part.starts_with('.'))
}

/// The URI of a path.
fn uri(path: &str) -> String {
    format!("{PREFIX}{}", utf8_percent_encode(path, RESERVED))
}

/// What is encoded in the URI of a path: everything but unreserved characters and slashes.
const RESERVED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_lead_elsewhere_are_not_plain() {
        for path in [
            "..", "../x", "a/../x", "a/..", "./x", "/x", "a//x", "", ".hidden", "a/.git/x", "a\\b", "..\\x",
            "a\0",
        ] {
            assert!(!is_plain(path), "{path:?}");
        }
        for path in ["a", "a/b.txt", "a b", "a..b"] {
            assert!(is_plain(path), "{path:?}");
        }
    }

    #[test]
    fn uris_are_escaped() {
        assert_eq!(uri("a b/ü%.txt"), "file:///dir/a%20b/%C3%BC%25.txt");
    }
}
