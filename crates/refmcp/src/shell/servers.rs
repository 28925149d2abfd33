//! The servers of a session: which there are, what they are called, and which of them are connected.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use refmcp_client::{Client, Subscriptions, redact};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use super::catalog::{Catalog, Catalogs};
use crate::args::{Target, UsageError, usage};
use crate::command::auth;
use crate::command::client::watch::is_stateless;
use crate::command::client::{Session, exit_error};
use crate::ui::suggest::choices;

/// How long the lists of the servers are waited for.
const CATALOG_TIMEOUT: Duration = Duration::from_secs(5);

/// All servers of the session; clones share them.
#[derive(Clone, Default)]
pub(super) struct ServerRegistry(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    entries: Vec<Entry>,
    used: Option<String>,
    /// Servers that configuration files name.
    configured: Vec<String>,
}

/// One server.
#[derive(Clone)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) target: Target,
    pub(super) state: ServerState,
}

/// A connected server.
pub(super) struct Connected {
    pub(super) name: String,
    pub(super) target: Target,
    pub(super) session: Session,
    /// What it catalogs, once that is known.
    pub(super) catalog: Arc<watch::Sender<Option<Arc<Catalog>>>>,
    /// The resources whose changes are of interest.
    pub(super) subscriptions: Subscriptions,
    /// Why it does not answer at the moment.
    pub(super) outage: Outage,
    pub(super) monitor: AbortOnDropHandle<()>,
}

impl Connected {
    pub(super) fn client(&self) -> &Client {
        &self.session.client
    }

    /// What comes of work with this server; what fails for want of a login, with how to log in.
    pub(super) async fn with_hint<T>(
        &self,
        work: impl Future<Output = anyhow::Result<T>>,
    ) -> anyhow::Result<T> {
        work.await.map_err(|error| auth::hinted(error, Some(&self.target)))
    }

    /// The same for one request.
    pub(super) async fn ask<T>(
        &self,
        request: impl IntoFuture<Output = Result<T, refmcp_client::Error>>,
    ) -> anyhow::Result<T> {
        let asked = async { request.await.map_err(|error| exit_error::of_request(&error)) };
        self.with_hint(asked).await
    }

    /// Asks for the changes that are of interest now. A server with sessions was asked before, by a request of its own.
    pub(super) async fn apply_subscriptions(&self) {
        if is_stateless(self.client()) {
            self.subscriptions.apply().await;
        } else {
            self.subscriptions.mark_applied().await;
        }
    }

    /// Asks for its lists again.
    pub(super) async fn refresh(&self) {
        self.catalog.send_replace(Some(Arc::new(Catalog::fetch(self.client()).await)));
    }

    async fn known(&self) -> Arc<Catalog> {
        let mut catalog = self.catalog.subscribe();
        match catalog.wait_for(Option::is_some).await {
            Ok(catalog) => catalog.clone().unwrap_or_default(),
            Err(_) => Arc::default(),
        }
    }
}

/// Whether a server is connected.
#[derive(Clone)]
pub(super) enum ServerState {
    /// Not yet; or not again, where it was before.
    Connecting {
        again: bool,
    },
    Connected(Arc<Connected>),
    /// It was left.
    Disconnected,
    /// It could not be connected or has gone, and why.
    Failed(String),
}

impl ServerState {
    /// The state in one word.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Connecting { again: false } => "connecting",
            Self::Connecting { again: true } => "reconnecting",
            Self::Connected(_) => "connected",
            Self::Disconnected => "disconnected",
            Self::Failed(_) => "failed",
        }
    }

    /// What went wrong, if something did.
    pub(super) fn reason(&self) -> Option<&str> {
        match self {
            Self::Failed(why) => Some(why),
            _ => None,
        }
    }

    /// The state for people.
    pub(super) fn text(&self) -> String {
        described(self.word(), self.reason())
    }
}

/// A state in one word, and the reason for it.
pub(super) fn described(word: &str, reason: Option<&str>) -> String {
    reason.map_or_else(|| word.to_owned(), |why| format!("{word}: {why}"))
}

/// Why a server that has no connection of its own to lose does not answer at the moment, as far as that is known.
#[derive(Debug, Clone, Default)]
pub(super) struct Outage(Arc<Mutex<Option<String>>>);

impl Outage {
    /// It does not answer; whether that is new.
    pub(super) fn begins(&self, why: String) -> bool {
        self.0.lock().replace(why).is_none()
    }

    /// It answers; whether it did not before.
    pub(super) fn ends(&self) -> bool {
        self.0.lock().take().is_some()
    }

    pub(super) fn why(&self) -> Option<String> {
        self.0.lock().clone()
    }
}

impl ServerRegistry {
    /// Adds a server that is not connected yet; its name is made unlike all others.
    pub(super) fn add(&self, target: &Target) -> String {
        let mut inner = self.0.lock();
        let wanted = name_of(target);
        let is_taken = |name: &str| inner.entries.iter().any(|entry| entry.name == name);
        let mut name = wanted.clone();
        let mut number = 2;
        while is_taken(&name) {
            name = format!("{wanted}-{number}");
            number += 1;
        }
        let state = ServerState::Connecting { again: false };
        inner.entries.push(Entry { name: name.clone(), target: target.clone(), state });
        name
    }

    /// Forgets a server that was never connected.
    pub(super) fn remove(&self, name: &str) {
        self.0.lock().entries.retain(|entry| entry.name != name);
    }

    /// The servers that configuration files name.
    pub(super) fn set_configured(&self, names: Vec<String>) {
        self.0.lock().configured = names;
    }

    pub(super) fn set(&self, name: &str, state: ServerState) {
        // What was connected before is dropped without the lock: that may take a while.
        let mut before = None;
        if let Some(entry) = self.0.lock().entries.iter_mut().find(|entry| entry.name == name) {
            before = Some(std::mem::replace(&mut entry.state, state));
        }
        drop(before);
    }

    pub(super) fn entries(&self) -> Vec<Entry> {
        self.0.lock().entries.clone()
    }

    pub(super) fn entry(&self, name: &str) -> Option<Entry> {
        self.0.lock().entries.iter().find(|entry| entry.name == name).cloned()
    }

    pub(super) fn connected(&self) -> Vec<Arc<Connected>> {
        let connected = |entry: &Entry| match &entry.state {
            ServerState::Connected(connected) => Some(connected.clone()),
            _ => None,
        };
        self.0.lock().entries.iter().filter_map(connected).collect()
    }

    pub(super) fn used(&self) -> Option<String> {
        self.0.lock().used.clone()
    }

    pub(super) fn set_used(&self, name: Option<String>) {
        self.0.lock().used = name;
    }

    /// The connected server of this name.
    pub(super) fn named(&self, name: &str) -> Result<Arc<Connected>, UsageError> {
        match self.entry(name).map(|entry| entry.state) {
            Some(ServerState::Connected(connected)) => Ok(connected),
            Some(state) => {
                Err(usage!("{name} is not connected: {}; to connect: connect {name}", state.text()))
            }
            None => {
                let names = self.names();
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                let there = choices(name, &names, "there is").unwrap_or_else(|| "there is none".to_owned());
                Err(usage!("no server is called {name:?}; {there}"))
            }
        }
    }

    /// The server of this name, or the one that is preferred, or all.
    pub(super) fn chosen(&self, name: Option<&str>) -> Result<Vec<Arc<Connected>>, UsageError> {
        let all = match name.map(str::to_owned).or_else(|| self.used()) {
            Some(name) => vec![self.named(&name)?],
            None => self.connected(),
        };
        if all.is_empty() { Err(self.no_server()) } else { Ok(all) }
    }

    /// The server that is preferred, or the only one.
    pub(super) fn one(&self) -> Result<Arc<Connected>, UsageError> {
        let mut all = self.chosen(None)?;
        match (all.pop(), all.is_empty()) {
            (Some(one), true) => Ok(one),
            (None, _) => Err(self.no_server()),
            (Some(_), false) => Err(UsageError::new("there are several servers: say which with use SERVER")),
        }
    }

    /// What all servers catalog; those that are slow to say so are waited for.
    pub(super) async fn catalogs(&self) -> Catalogs {
        let mut catalogs = Catalogs { used: self.used(), ..Catalogs::default() };
        let until = tokio::time::Instant::now() + CATALOG_TIMEOUT;
        for entry in self.entries() {
            match entry.state {
                ServerState::Connected(connected) => {
                    let catalog = tokio::time::timeout_at(until, connected.known()).await;
                    catalogs.servers.push((entry.name, catalog.unwrap_or_default()));
                }
                _ => catalogs.absent.push(entry.name),
            }
        }
        catalogs.configured = self.0.lock().configured.clone();
        catalogs
    }

    /// No server is there to be asked: how to connect to one.
    pub(super) fn no_server(&self) -> UsageError {
        let names = self.names();
        UsageError::new(match names.as_slice() {
            [] => "no server is connected; to connect: connect TARGET".to_owned(),
            names => {
                format!("no server is connected; to connect again: connect {}", names.join(" or connect "))
            }
        })
    }

    fn names(&self) -> Vec<String> {
        self.0.lock().entries.iter().map(|entry| entry.name.clone()).collect()
    }

    /// Asks all servers for their lists again.
    pub(super) async fn refresh(&self) {
        let all = self.connected();
        futures_util::future::join_all(all.iter().map(|server| server.refresh())).await;
    }
}

/// Programs that run others: the name of a server is that of what they run.
const RUNNERS: [&str; 12] =
    ["npx", "bunx", "uvx", "node", "python", "python3", "deno", "bun", "uv", "docker", "run", "sh"];

/// What a server is called that has no name: by its host, or by its program.
fn name_of(target: &Target) -> String {
    let name = match target {
        Target::Named(name) => name.clone(),
        Target::Url { url, .. } => refmcp_auth::uri::authority(url),
        Target::Command(words) => {
            let bare = |word: &String| {
                let last = word.rsplit(['/', '\\']).next().unwrap_or_default();
                let last = last.split('@').find(|part| !part.is_empty()).unwrap_or_default();
                let stem = last.rsplit_once('.').map_or(last, |(stem, _)| stem);
                stem.trim_start_matches("mcp-").trim_start_matches("server-").to_owned()
            };
            // A name is shown everywhere, so no secret may get into it.
            let shown = redact::words(words);
            let is_named = |word: &&String| !word.starts_with('-') && !word.contains(['=', '*']);
            let candidates = shown.iter().filter(is_named).map(bare);
            let mut candidates = candidates.filter(|name| !name.is_empty());
            let name = candidates.find(|name| !RUNNERS.contains(&name.as_str()));
            name.or_else(|| shown.first().map(bare)).unwrap_or_default()
        }
    };
    let name: String =
        name.chars().map(|c| if c.is_whitespace() || c.is_control() { '-' } else { c }).collect();
    if name.is_empty() { "server".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_without_a_name_get_one() {
        let command = |line: &str| Target::Command(line.split(' ').map(str::to_owned).collect());
        for (target, name) in [
            (Target::Named("everything".to_owned()), "everything"),
            (Target::parse("http://127.0.0.1:3000/mcp").unwrap(), "127.0.0.1:3000"),
            (Target::parse("https://example.org/mcp").unwrap(), "example.org"),
            (command("/usr/bin/refmcp stdio"), "refmcp"),
            (command("npx -y @modelcontextprotocol/server-everything"), "everything"),
            (command("npx -y some-server@1.2.3"), "some-server"),
            (command("python3 ./weather.py"), "weather"),
            (command("npx -y"), "npx"),
            (command("-"), "-"),
            (command("KEY=hush docker run -e TOKEN=hush --key hush mcp/time"), "time"),
        ] {
            assert_eq!(name_of(&target), name, "{target}");
        }
    }

    #[test]
    fn equal_names_are_numbered() {
        let registry = ServerRegistry::default();
        let target = Target::Command(vec!["refmcp".to_owned()]);
        let names: Vec<String> = (0..3).map(|_| registry.add(&target)).collect();
        assert_eq!(names, ["refmcp", "refmcp-2", "refmcp-3"]);
        assert!(registry.connected().is_empty());
        let error = registry.named("refmcp-2").err().unwrap().to_string();
        assert!(error.contains("not connected: connecting; to connect: connect refmcp-2"), "{error}");
        let error = registry.chosen(None).err().unwrap().to_string();
        assert!(error.contains("to connect again: connect refmcp or connect refmcp-2"), "{error}");
        let error = registry.named("x").err().unwrap().to_string();
        assert!(error.contains("refmcp, refmcp-2, refmcp-3"), "{error}");
    }
}
