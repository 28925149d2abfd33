//! Errors of starting a program, with what to change.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use refmcp_proto::engine::client::TransportError;

use super::ChildProcess;
use crate::redact;

pub(super) fn start_error(child: &ChildProcess, error: &io::Error) -> TransportError {
    let cause = cause(child, error).unwrap_or_else(|| error.to_string());
    // `NAME=value` may stand where the program should.
    let program = redact::word(&child.program.to_string_lossy());
    TransportError::Unreachable(format!("the program {program:?} cannot be started: {cause}"))
}

fn cause(child: &ChildProcess, error: &io::Error) -> Option<String> {
    if let Some(directory) = &child.directory
        && !directory.is_dir()
    {
        return Some(format!("its working directory {directory:?} is not there"));
    }
    match error.kind() {
        io::ErrorKind::InvalidInput => nul(child),
        io::ErrorKind::ArgumentListTooLong => {
            Some("its arguments and environment are more than the system allows".to_owned())
        }
        io::ErrorKind::NotFound => Some(missing(child)),
        io::ErrorKind::PermissionDenied => Some(forbidden(child)),
        _ => None,
    }
}

/// Which argument has a NUL in it.
fn nul(child: &ChildProcess) -> Option<String> {
    let has_nul = |word: &OsStr| word.as_encoded_bytes().contains(&0);
    if has_nul(&child.program) {
        return Some("its name has a NUL in it".to_owned());
    }
    if let Some(at) = child.args.iter().position(|arg| has_nul(arg)) {
        return Some(format!("its argument {} has a NUL in it", at + 1));
    }
    let (name, _) = child.environment.given().find(|(name, value)| has_nul(name) || has_nul(value))?;
    Some(format!("its environment variable {name:?} has a NUL in it"))
}

/// The path of the program, if it is not a name in `PATH`.
fn path(child: &ChildProcess) -> Option<std::path::PathBuf> {
    let program = Path::new(&child.program);
    let given = program.components().count() > 1 || program.is_absolute();
    given.then(|| child.directory.as_deref().unwrap_or(Path::new("")).join(program))
}

fn missing(child: &ChildProcess) -> String {
    match path(child) {
        // A script with an unknown interpreter, or a program for another system.
        Some(path) if path.exists() => "the interpreter that it names is not there".to_owned(),
        Some(_) => "there is no such file".to_owned(),
        None if child.program.to_string_lossy().contains(char::is_whitespace) => {
            "there is no such command in PATH; its arguments have to be words of their own, which a configuration file \
             has in \"args\""
                .to_owned()
        }
        None => "there is no such command in PATH".to_owned(),
    }
}

fn forbidden(child: &ChildProcess) -> String {
    match path(child) {
        Some(path) if path.is_dir() => "it is a directory".to_owned(),
        _ => "it is not executable, or not for us".to_owned(),
    }
}
