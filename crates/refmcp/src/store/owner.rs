//! Whether a file with secrets in it is its owner's alone.

use std::fs::File;
use std::path::Path;

use anyhow::Result;
#[cfg(unix)]
use anyhow::{Context, bail};

/// Refuses a file that somebody else could have read or written, or a folder in which somebody else could have put it.
#[cfg(unix)]
pub(super) fn check_owner(file: &File, path: &Path) -> Result<()> {
    use std::os::unix::fs::MetadataExt;

    let us = rustix::process::geteuid().as_raw();
    let about = file.metadata().with_context(|| format!("cannot read {}", path.display()))?;
    let shown = path.display();
    if about.uid() != us && about.uid() != 0 {
        bail!(
            "{shown} belongs to somebody else, so the tokens in it are not used; remove it and log in again"
        );
    }
    if about.mode() & 0o077 != 0 {
        let mode = about.mode() & 0o777;
        bail!(
            "others can get at {shown} (its mode is {mode:03o}), so the tokens in it are not used; \
             if nobody did, `chmod 600 {shown}`, else remove it and log in again"
        );
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    let mode = folder.metadata().with_context(|| format!("cannot look at {}", folder.display()))?.mode();
    if mode & 0o022 != 0 && mode & 0o1000 == 0 {
        let folder = folder.display();
        bail!("others can write into {folder}, so the tokens there are not used; `chmod 700 {folder}`");
    }
    Ok(())
}

#[cfg(not(unix))]
pub(super) fn check_owner(_file: &File, _path: &Path) -> Result<()> {
    // The folder is in the user's own profile, which the system keeps from others.
    Ok(())
}
