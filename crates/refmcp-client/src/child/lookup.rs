//! Finding the program of a server before it is started, as the system would.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Where the system looks for programs when the environment has no `PATH`.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// The absolute path of a program that is started in this directory with this `PATH`. A path is not looked for: whether
/// there is a program shows when it is started.
pub(super) fn find(program: &OsStr, path: Option<&OsStr>, directory: Option<&Path>) -> Option<PathBuf> {
    let directory = directory.unwrap_or(Path::new(""));
    let here = std::path::absolute(if directory.as_os_str().is_empty() { Path::new(".") } else { directory })
        .ok()?;
    if program.as_encoded_bytes().contains(&b'/') {
        return Some(here.join(program));
    }
    let folders = env::split_paths(path.unwrap_or(DEFAULT_PATH.as_ref()));
    folders.map(|folder| here.join(folder).join(program)).find(|found| is_program(found))
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.is_file()
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn programs_are_found_as_the_system_finds_them() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for (name, mode) in
            [("one/tool", 0o755), ("two/tool", 0o755), ("two/other", 0o755), ("one/other", 0o644)]
        {
            fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            fs::write(at(name), "").unwrap();
            fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        fs::create_dir(at("one/folder")).unwrap();
        let path = env::join_paths([at("one"), at("two")]).unwrap();
        let found = |program: &str, path: &OsStr| find(program.as_ref(), Some(path), Some(folder.path()));
        assert_eq!(found("tool", &path), Some(at("one/tool")));
        assert_eq!(found("other", &path), Some(at("two/other")), "what cannot be run is no program");
        assert_eq!(found("folder", &path), None);
        assert_eq!(found("nothing", &path), None);
        // Both count from the directory that it is started in.
        assert_eq!(found("tool", "two:one".as_ref()), Some(at("two/tool")));
        assert_eq!(found("./tool", &path), Some(at("./tool")));
        assert_eq!(found("/bin/sh", &path), Some(PathBuf::from("/bin/sh")));
        let here = find("tool".as_ref(), Some("".as_ref()), Some(&at("two")));
        assert_eq!(
            here.map(|found| found.canonicalize().unwrap()),
            Some(at("two/tool").canonicalize().unwrap())
        );
        assert!(find("sh".as_ref(), None, None).is_some_and(|found| found.ends_with("bin/sh")));
    }
}
