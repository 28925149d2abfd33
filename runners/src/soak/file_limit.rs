//! The number of files that a process may have open. Connections are files, in the server and in its clients.

use anyhow::Result;
#[cfg(unix)]
use anyhow::ensure;
#[cfg(unix)]
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit of this process, which the server inherits, as far as the system lets it.
///
/// # Errors
/// It cannot be raised far enough.
#[cfg(unix)]
pub(super) fn raise(wanted: u64) -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= wanted) {
        return Ok(());
    }
    let most = limit.maximum.unwrap_or(wanted);
    ensure!(
        most >= wanted,
        "a process may have {most} open files here, and {wanted} are needed: raise the limit (ulimit -n)"
    );
    setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: limit.maximum })?;
    Ok(())
}

/// There is no such limit.
#[cfg(not(unix))]
pub(super) fn raise(_: u64) -> Result<()> {
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_cannot_be_had_is_an_error() {
        raise(1).unwrap();
        if getrlimit(Resource::Nofile).maximum.is_some_and(|most| most < u64::MAX) {
            assert!(raise(u64::MAX).unwrap_err().to_string().contains("ulimit -n"));
        }
    }
}
