//! The skills of a directory: each directory in it that has a `SKILL.md`.
//!
//! Every access goes through a [`Dir`], as with resources. What is offered of a file is what was read when it was last found
//! changed, so that its digest is that of what clients read.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::PathBuf;

use cap_std::fs::Dir;
use notify::RecursiveMode;
use refmcp_server::skill::{Document, MAX_BYTES, MAX_FILES, SKILL_FILE};
use refmcp_server::{Server, Skill};

use crate::ReferenceError;
use crate::directory_watcher::DirectoryWatcher;
use crate::resources::FileType;

/// How many directories inside each other are looked at.
const MAX_DEPTH: usize = 16;
/// Directories that are looked at.
const MAX_DIRECTORIES: usize = 10_000;
/// Skills that are offered.
const MAX_SKILLS: usize = 1000;
/// The most bytes that all skills may have together: they are kept in memory.
const MAX_TOTAL_BYTES: u64 = 64 << 20;

/// A watched directory that is not served yet.
pub(crate) struct UnservedSkills {
    dir: Dir,
    watcher: DirectoryWatcher,
}

/// The skills of a running server that are of a directory.
struct SkillDirectories {
    dir: Dir,
    /// Those that are offered: their URIs, by the paths of their directories.
    offered: BTreeMap<String, String>,
    /// What is wrong with directories, as the log has it.
    faults: BTreeMap<String, String>,
}

/// A skill as it was found.
struct Found {
    uri: String,
    skill: Skill,
}

/// What a directory has in it, by the paths of skills.
#[derive(Default)]
struct Scan {
    found: BTreeMap<String, Result<Found, String>>,
    /// Skills whose place has no room any more.
    left_out: bool,
    directories: usize,
    bytes: u64,
}

impl UnservedSkills {
    pub(crate) fn open(path: PathBuf) -> Result<Self, ReferenceError> {
        let (dir, watcher) = DirectoryWatcher::open("skills", path, RecursiveMode::Recursive)?;
        Ok(Self { dir, watcher })
    }

    /// Offers the skills, and again whenever they change.
    pub(crate) fn serve(self, server: &Server) -> Result<(), ReferenceError> {
        let mut skills =
            SkillDirectories { dir: self.dir, offered: BTreeMap::new(), faults: BTreeMap::new() };
        skills.refresh(server);
        self.watcher.on_change(server, move |server| skills.refresh(server))
    }
}

impl SkillDirectories {
    /// Brings the server's skills up to date and tells of what has changed. A skill that cannot be read any more stays what it
    /// was, until it is mended or deleted.
    fn refresh(&mut self, server: &Server) {
        let mut scan = Scan::default();
        if let Err(error) = scan.directory(&self.dir, "", 0) {
            tracing::warn!("the directory of skills cannot be read, so the skills stay as they are: {error}");
            return;
        }
        let (offered, mut faults, mut changed) = (&mut self.offered, BTreeMap::new(), Vec::new());
        server.change_lists(|lists| {
            offered.retain(|path, uri| {
                let stays = match scan.found.get(path) {
                    Some(Ok(found)) => found.uri == *uri,
                    Some(Err(_)) => true,
                    // What is in a directory that cannot be read is not known to be gone.
                    None => above(path).any(|above| matches!(scan.found.get(above), Some(Err(_)))),
                };
                if !stays {
                    changed.extend(lists.remove_skill(uri));
                }
                stays
            });
            for (path, found) in scan.found {
                let added = found.and_then(|Found { uri, skill }| {
                    if !offered.contains_key(&path) && lists.skills().any(|taken| taken == uri) {
                        return Err(format!("{uri} is a skill already; rename one of them"));
                    }
                    changed.extend(lists.add_skill(skill).map_err(|invalid| invalid.to_string())?);
                    Ok(uri)
                });
                match added {
                    Ok(uri) => drop(offered.insert(path, uri)),
                    Err(fault) => drop(faults.insert(path, fault)),
                }
            }
        });
        if scan.left_out {
            let what = "the directory of skills is larger than what is offered of it".to_owned();
            faults.insert(String::new(), what);
        }
        self.log(&faults);
        self.faults = faults;
        changed.into_iter().for_each(|uri| server.resource_updated(uri));
    }

    /// Says what is new: directories that are wrong, and those that are right again.
    fn log(&self, faults: &BTreeMap<String, String>) {
        for (path, fault) in faults.iter().filter(|(path, fault)| self.faults.get(*path) != Some(*fault)) {
            let instead = match self.offered.contains_key(path) {
                true => "the skill stays as it was before the change",
                false => "it is left out",
            };
            tracing::warn!("skill {}: {fault} ({instead})", shown(path));
        }
        let mended = self.faults.keys().filter(|path| !faults.contains_key(*path));
        for path in mended.filter(|path| self.offered.contains_key(*path)) {
            tracing::info!("skill {}: is right now, and offered", shown(path));
        }
    }
}

/// The paths of the directories around one.
fn above(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').filter_map(|(at, _)| path.get(..at))
}

/// The path of a skill for people.
fn shown(path: &str) -> &str {
    if path.is_empty() { "." } else { path }
}

impl Scan {
    /// Looks for skills in a directory.
    fn directory(&mut self, dir: &Dir, path: &str, depth: usize) -> std::io::Result<()> {
        self.directories += 1;
        let is_file = dir.symlink_metadata(SKILL_FILE).is_ok_and(|meta| meta.is_file());
        if is_file {
            self.left_out |= self.found.len() >= MAX_SKILLS;
            if self.found.len() < MAX_SKILLS {
                let skill = self.skill(dir, path);
                self.found.insert(path.to_owned(), skill);
            }
            return Ok(());
        }
        for (name, child) in children(dir)? {
            let Child::Directory = child else { continue };
            if depth + 1 >= MAX_DEPTH || self.directories >= MAX_DIRECTORIES {
                self.left_out = true;
                break;
            }
            let below = join(path, &name);
            let looked = dir.open_dir(&name).and_then(|child| self.directory(&child, &below, depth + 1));
            // One that is gone before it was looked at is as if it had never been there.
            if let Err(error) = looked
                && error.kind() != std::io::ErrorKind::NotFound
            {
                self.found.insert(below, Err(format!("the directory cannot be read: {error}")));
            }
        }
        Ok(())
    }

    /// The skill in a directory.
    fn skill(&mut self, dir: &Dir, path: &str) -> Result<Found, String> {
        let mut files = BTreeMap::new();
        self.files(dir, "", 0, &mut files)?;
        let text = files.remove(SKILL_FILE).unwrap_or_default();
        let name = {
            let text = std::str::from_utf8(&text).map_err(|_| format!("{SKILL_FILE} is not UTF-8"))?;
            let document = Document::parse(text).map_err(|error| format!("{SKILL_FILE}: {error}"))?;
            document.name().to_owned()
        };
        let (prefix, directory) = path.rsplit_once('/').unwrap_or(("", path));
        // A directory that is a skill as a whole may have any name.
        if !path.is_empty() && directory != name {
            return Err(format!("the skill is called {name}; rename the directory, or the skill"));
        }
        let uri = format!("skill://{}/{SKILL_FILE}", join(prefix, &name));
        let mut skill = Skill::new(text).under(prefix);
        for (path, bytes) in files {
            skill = match FileType::from_path(&path).mime_type() {
                Some(mime_type) => skill.file(path, mime_type, bytes),
                None => skill.untyped_file(path, bytes),
            };
        }
        Ok(Found { uri, skill })
    }

    /// All plain files below a directory. Links are left out, and so is what begins with a dot.
    fn files(
        &mut self,
        dir: &Dir,
        prefix: &str,
        depth: usize,
        files: &mut BTreeMap<String, Vec<u8>>,
    ) -> Result<(), String> {
        if depth >= MAX_DEPTH {
            return Err(format!("there are more than {MAX_DEPTH} directories inside each other"));
        }
        let children = children(dir).map_err(|error| format!("{} cannot be read: {error}", shown(prefix)))?;
        for (name, child) in children {
            let path = join(prefix, &name);
            match child {
                Child::Directory => {
                    let dir =
                        dir.open_dir(&name).map_err(|error| format!("{path} cannot be read: {error}"))?;
                    self.files(&dir, &path, depth + 1, files)?;
                }
                Child::File if files.len() >= MAX_FILES => {
                    return Err(format!("there are more than {MAX_FILES} files"));
                }
                Child::File => {
                    let bytes =
                        read(dir, &name).map_err(|error| format!("{path} cannot be read: {error}"))?;
                    let size = bytes.len() as u64;
                    self.bytes += size;
                    if size > MAX_BYTES || self.bytes > MAX_TOTAL_BYTES {
                        return Err(format!(
                            "the files are larger than {} MiB, or those of all skills than {} MiB",
                            MAX_BYTES >> 20,
                            MAX_TOTAL_BYTES >> 20
                        ));
                    }
                    files.insert(path, bytes);
                }
            }
        }
        Ok(())
    }
}

/// A file or a directory; a link is neither.
enum Child {
    File,
    Directory,
}

/// What is in a directory, by name. Nothing of it is opened: a directory may have more than a process may have open.
fn children(dir: &Dir) -> std::io::Result<BTreeMap<String, Child>> {
    let mut children = BTreeMap::new();
    for entry in dir.entries()? {
        let entry = entry?;
        let (Ok(name), Ok(kind)) = (entry.file_name().into_string(), entry.file_type()) else { continue };
        if name.starts_with('.') {
            continue;
        }
        if kind.is_dir() {
            children.insert(name, Child::Directory);
        } else if kind.is_file() {
            children.insert(name, Child::File);
        }
    }
    Ok(children)
}

/// The bytes of a file, one more than a skill may have at the most.
fn read(dir: &Dir, name: &str) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // A pipe that has taken the place of the file since would be waited for.
    if !dir.symlink_metadata(name)?.is_file() {
        return Err(std::io::Error::other("it is no plain file"));
    }
    dir.open(name)?.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn join(prefix: &str, name: &str) -> String {
    if prefix.is_empty() { name.to_owned() } else { format!("{prefix}/{name}") }
}
