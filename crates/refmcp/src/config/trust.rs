//! Trust in configured servers: which command starts a server, and whether the user has allowed it.

use anyhow::Result;

use super::{Input, Launch, ServerEntry, Servers};
use crate::args::{UsageError, usage};
use crate::store::trust::{ServerIdentity, Source, Trust, Verdict};

/// The entry with its variables filled in, without asking for anything.
///
/// # Errors
///
/// A variable stands for nothing, or for something that has to be asked for.
pub(crate) fn resolve_unasked(known: &Servers, entry: &ServerEntry) -> Result<ServerEntry, UsageError> {
    let ask = |input: &Input| Err(format!("{} is asked for only when it is started", input.id));
    known
        .resolve(entry, &ask, &|variable| std::env::var(variable).ok())
        .map_err(|fault| usage!("{}: {fault}", entry.name))
}

/// What a decision about a server is about: the command that starts it; `None` where nothing is started. The entry's
/// variables are filled in.
///
/// # Errors
///
/// The file cannot be read any more.
pub(crate) fn identity(entry: &ServerEntry) -> Result<Option<ServerIdentity>> {
    let Launch::Command { program, args, .. } = &entry.launch else { return Ok(None) };
    let command: Vec<String> = std::iter::once(program).chain(args).cloned().collect();
    Ok(Some(ServerIdentity::new(&command, Some(Source::read(&entry.source)?))))
}

/// Whether the server of an entry may be started; `None` where nothing is started. One whose command depends on an
/// answer has to be asked about.
///
/// # Errors
///
/// The file cannot be read any more.
pub(crate) fn verdict(known: &Servers, entry: &ServerEntry, trust: &Trust) -> Result<Option<Verdict>> {
    if !matches!(entry.launch, Launch::Command { .. }) {
        return Ok(None);
    }
    let Ok(entry) = resolve_unasked(known, entry) else { return Ok(Some(Verdict::Unknown)) };
    Ok(identity(&entry)?.map(|identity| trust.server(&identity)))
}
