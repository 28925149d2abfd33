//! Trust in configured servers: what starts a server or is sent to it, and whether the user has allowed that.

use anyhow::Result;
use url::Url;

use super::{Input, Launch, ServerEntry, Servers, Start};
use crate::args::{UsageError, usage};
use crate::store::trust::{SentVariables, ServerIdentity, Source, Trust, TrustStatus};

/// The entry with its variables filled in, without asking for anything.
///
/// # Errors
///
/// A variable stands for nothing, or for something that has to be asked for.
pub(crate) fn resolve_unasked(known: &Servers, entry: &ServerEntry) -> Result<ServerEntry, UsageError> {
    let ask = |input: &Input| Err(format!("{} is asked for only when it is started", input.id));
    known
        .resolve(entry, &ask, &|variable| std::env::var(variable).ok())
        .map_err(|error| usage!("{}: {error}", entry.name))
}

impl ServerEntry {
    /// What is decided about before its program is started.
    ///
    /// # Errors
    ///
    /// The file is not there any more.
    pub(crate) fn start_identity(&self, start: &Start) -> Result<ServerIdentity> {
        let source = Source::of(&self.source, &self.source_sha256)?;
        let program = start.child.program().to_string_lossy();
        // Where it is not set, it is the user who chooses it.
        let directory = start.child.directory().map(|_| start.directory().to_string_lossy().into_owned());
        let identity = ServerIdentity::new(&start.words, Some(source));
        Ok(identity.started(&program, directory, start.env_file.clone()))
    }

    /// What is decided about before values of our environment are sent to it.
    ///
    /// # Errors
    ///
    /// The file is not there any more.
    pub(crate) fn send_identity(&self, sent: SentVariables) -> Result<ServerIdentity> {
        Ok(ServerIdentity::sending(sent, Source::of(&self.source, &self.source_sha256)?))
    }
}

/// The variables of our environment whose values would be sent to a server, and where that is; `None` where none is. The
/// entry's variables are filled in.
pub(crate) fn sent_variables(entry: &ServerEntry) -> Option<SentVariables> {
    let Launch::Remote { url, .. } = &entry.launch else { return None };
    if entry.used_variables.is_empty() {
        return None;
    }
    // What is no URL is never connected.
    let to = Url::parse(url).ok()?.origin().ascii_serialization();
    Some(SentVariables { to, variables: entry.used_variables.clone() })
}

/// What a decision about a server is about: what starts it, or what it is sent; `None` where there is nothing to decide.
/// The entry's variables are filled in.
///
/// # Errors
///
/// A file cannot be read any more.
pub(crate) fn identity(entry: &ServerEntry) -> Result<Option<ServerIdentity>> {
    if let Some(sent) = sent_variables(entry) {
        return entry.send_identity(sent).map(Some);
    }
    let start = entry.start().map_err(|problem| UsageError::new(problem.to_string()))?;
    let Some(mut start) = start else { return Ok(None) };
    // A program that is not there can be decided about, but not started.
    start.child = start.child.clone().resolved().unwrap_or(start.child);
    entry.start_identity(&start).map(Some)
}

/// Whether the server of an entry may be used; `None` where there is nothing to decide. One that depends on an answer has
/// to be asked about.
///
/// # Errors
///
/// A file cannot be read any more.
pub(crate) fn trust_status(
    known: &Servers,
    entry: &ServerEntry,
    trust: &Trust,
) -> Result<Option<TrustStatus>> {
    let Ok(resolved) = resolve_unasked(known, entry) else {
        return Ok(matches!(entry.launch, Launch::Command { .. }).then_some(TrustStatus::Unknown));
    };
    Ok(identity(&resolved)?.map(|identity| trust.server(&identity)))
}
