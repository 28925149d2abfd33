//! Carrying out commands.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use parking_lot::Mutex;
use refmcp_client::Subscriptions;
use refmcp_client::model::LogLevel;
use serde_json::json;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use super::catalog::{self, Catalog, NamesOf, Unresolved};
use super::commands::{Command, OfServer, target};
use super::history::History;
use super::monitor::ServerMonitor;
use super::notices::Notices;
use super::servers::{Connected, Entry, Outage, ServerRegistry, ServerState, described};
use crate::args::{ExitReason, ListKind, OutputFormat, SharedOptions, Target, UsageError, usage};
use crate::command::auth;
use crate::command::client::extra_methods::ExtraMethods;
use crate::command::client::output::{Printer, write};
use crate::command::client::watch::{PING_TIMEOUT, answers};
use crate::command::client::{Person, Session, call, exit_error, list, models, requests, root};
use crate::ui::progress::Bars;
use crate::ui::redact::masked;
use crate::ui::render::table::Table;
use crate::ui::text::one_line;

/// A session.
pub(super) struct Shell {
    pub(super) registry: ServerRegistry,
    pub(super) shared: SharedOptions,
    pub(super) person: Person,
    pub(super) bars: Bars,
    pub(super) notices: Notices,
    pub(super) history: Arc<Mutex<History>>,
}

impl Shell {
    /// What stands before the line: the server that is meant where none is named.
    pub(super) fn prompt(&self) -> String {
        let only = || match self.registry.entries().as_slice() {
            [one] => Some(one.name.clone()),
            _ => None,
        };
        let name = self.registry.used().or_else(only).unwrap_or_else(|| "refmcp".to_owned());
        format!("{}> ", one_line(&name))
    }

    /// Connects to a server that the session knows by this name.
    pub(super) async fn connect(&self, name: &str, target: &Target) -> Result<()> {
        let notices = self.notices.clone();
        let bars = self.bars.of_server(name, move |text| notices.say(text));
        let session = match Box::pin(Session::open(target, &self.shared, &self.person, &bars)).await {
            Ok(session) => session,
            Err(error) => {
                let error = auth::hinted(error, Some(target));
                self.registry.set(name, ServerState::Failed(one_line(&format!("{error:#}")).into_owned()));
                return Err(error);
            }
        };
        let catalog: Arc<watch::Sender<Option<Arc<Catalog>>>> = Arc::default();
        let subscriptions = Subscriptions::default();
        let outage = Outage::default();
        let monitor = ServerMonitor {
            name: name.to_owned(),
            client: session.client.clone(),
            catalog: catalog.clone(),
            notices: self.notices.clone(),
            registry: self.registry.clone(),
            outage: outage.clone(),
            subscriptions: subscriptions.clone(),
        };
        let monitoring = monitor.run(session.events.subscribe());
        let monitor = AbortOnDropHandle::new(tokio::spawn(monitoring));
        let (name, target) = (name.to_owned(), target.clone());
        let connected =
            Connected { name: name.clone(), target, session, catalog, subscriptions, outage, monitor };
        self.registry.set(&name, ServerState::Connected(Arc::new(connected)));
        Ok(())
    }

    /// Says in one line what was done at a server; programs that read results want no such line.
    pub(super) fn say(&self, server: &str, what: &str) {
        if self.shared.output == OutputFormat::Text {
            self.notices.say(format!("{}\n", one_line(&format!("[{server}] {what}"))));
        }
    }

    /// Leaves all servers.
    pub(super) async fn close(&self) {
        let all = self.registry.connected();
        futures_util::future::join_all(all.iter().map(|server| leave(server))).await;
    }

    /// Carries out a command.
    pub(super) async fn run(&mut self, command: Command) -> Result<ExitReason> {
        for server in self.registry.connected() {
            server.session.budget.restart();
        }
        match command {
            Command::Call { tool, arguments } => {
                let (server, tool) = self.find(ListKind::Tools, &tool, catalog::tools).await?;
                return server.with_hint(call::call(&server.session, &tool, &arguments)).await;
            }
            Command::Tools(of) => return self.list(ListKind::Tools, &of).await,
            Command::Resources(of) => return self.list(ListKind::Resources, &of).await,
            Command::Templates(of) => return self.list(ListKind::Templates, &of).await,
            Command::Prompts(of) => return self.list(ListKind::Prompts, &of).await,
            Command::Models(of) => return self.list(ListKind::Models, &of).await,
            Command::List { what, of } => return self.list(what, &of).await,
            Command::Read { what, variables } => self.read(&what, variables).await?,
            Command::Prompt { name, arguments } => {
                let (server, name) = self.find(ListKind::Prompts, &name, catalog::prompts).await?;
                server.with_hint(requests::prompt(&server.session, &name, &arguments)).await?;
            }
            Command::Subscribe { uri } => self.subscribe(&uri).await?,
            Command::Unsubscribe { uri } => self.unsubscribe(&uri).await?,
            Command::Level { level } => self.level(level).await?,
            Command::Ping(of) => self.ping(&of).await?,
            Command::Info(of) => {
                for server in self.registry.chosen(of.server.as_deref())? {
                    requests::info(&server.session)?;
                }
            }
            Command::Model { name } => self.model(&name).await?,
            Command::Metadata(of) => {
                for server in self.registry.chosen(of.server.as_deref())? {
                    server.with_hint(requests::metadata(&server.session)).await?;
                }
            }
            Command::Raw { method, params } => {
                let server = self.registry.one()?;
                server.with_hint(requests::raw(&server.session, &method, params.as_deref())).await?;
            }
            Command::Servers => self.servers().await?,
            Command::Use(OfServer { server }) => {
                if let Some(name) = &server {
                    self.registry.named(name)?;
                }
                self.registry.set_used(server);
            }
            Command::Connect { words } => self.connect_typed(&words).await?,
            Command::Disconnect { server } => self.disconnect(&server).await?,
            Command::Roots { paths } => self.roots(paths)?,
            Command::History => self.show_history()?,
            Command::Help(text) => write(text.as_bytes())?,
            Command::Describe(name) => return self.describe(&name).await,
            // Handled where lines are read.
            Command::Exit => {}
        }
        Ok(ExitReason::Done)
    }

    /// The server that a name means, and the name there. What is not known may be new, so it is asked for once.
    async fn find(&self, kind: ListKind, word: &str, names: NamesOf) -> Result<(Arc<Connected>, String)> {
        let mut catalogs = self.registry.catalogs().await;
        if catalogs.find(word, names) == Err(Unresolved::Unknown) {
            if let Some(server) = catalogs.absent_of(word) {
                self.registry.named(server)?;
            }
            self.registry.refresh().await;
            catalogs = self.registry.catalogs().await;
        }
        let has_none = |(server, _): &(String, String)| {
            catalogs.of_server(server).is_some_and(|catalog| names(catalog).is_empty())
        };
        match catalogs.find(word, names) {
            Ok((server, name)) => Ok((self.registry.named(&server)?, name)),
            Err(Unresolved::Several(names)) => Err(ambiguous(&names)),
            Err(Unresolved::Unknown) if catalogs.servers.is_empty() => Err(self.registry.no_server().into()),
            Err(Unresolved::Unknown) => match catalogs.only(word).filter(has_none) {
                // A server that lists none says best why.
                Some((server, name)) => Ok((self.registry.named(&server)?, name)),
                None => Err(UsageError::new(catalogs.unknown(kind, word)).into()),
            },
        }
    }

    /// Shows a tool, a prompt, a resource or a template whole.
    async fn describe(&self, word: &str) -> Result<ExitReason> {
        let kinds: [(ListKind, NamesOf); 4] = [
            (ListKind::Tools, catalog::tools),
            (ListKind::Prompts, catalog::prompts),
            (ListKind::Resources, catalog::resources),
            (ListKind::Templates, catalog::templates),
        ];
        let catalogs = self.registry.catalogs().await;
        let known = kinds.iter().find(|(_, names)| catalogs.find(word, names) != Err(Unresolved::Unknown));
        let Some((kind, names)) = known else {
            return Err(UsageError::new(catalogs.unknown(ListKind::All, word)).into());
        };
        let (server, name) = self.find(*kind, word, *names).await?;
        server.with_hint(list::list(&server.session, *kind, &[name])).await
    }

    async fn list(&self, what: ListKind, of: &OfServer) -> Result<ExitReason> {
        let servers = self.registry.chosen(of.server.as_deref())?;
        let several = servers.len() > 1;
        let mut reason = ExitReason::Done;
        for server in servers {
            if several && self.shared.output == OutputFormat::Text {
                let heading = format!("[{}]", server.name);
                write(format!("{}\n", server.session.printer.view().paint.strong(&heading)).as_bytes())?;
            }
            match server.with_hint(list::list(&server.session, what, &[])).await {
                // One that has no such list does not keep the others from being shown.
                Err(error) if several => {
                    reason = ExitReason::of(&error);
                    self.notices.say(format!("[{}] {}\n", server.name, one_line(&format!("{error:#}"))));
                }
                done => match done? {
                    ExitReason::Done => {}
                    incomplete => reason = incomplete,
                },
            }
        }
        Ok(reason)
    }

    async fn level(&self, level: LogLevel) -> Result<()> {
        for server in self.registry.chosen(None)? {
            server.with_hint(server.session.set_level(level)).await?;
            self.say(&server.name, &format!("sends log messages from {} on", level.as_str()));
        }
        Ok(())
    }

    /// Selects a model at the servers that know models; if none does, the error says so.
    async fn model(&self, name: &str) -> Result<()> {
        let servers = self.registry.chosen(None)?;
        let knows =
            |server: &&Arc<Connected>| ExtraMethods::MODELS.is_in(&server.client().server().capabilities);
        let any = servers.iter().any(|server| knows(&server));
        for server in servers.iter().filter(|server| knows(server) || !any) {
            server.with_hint(models::select_quietly(&server.session, name)).await?;
            self.say(&server.name, &format!("{name} is selected"));
        }
        Ok(())
    }

    async fn ping(&self, of: &OfServer) -> Result<()> {
        for server in self.registry.chosen(of.server.as_deref())? {
            let began = Instant::now();
            server.ask(server.client().ping()).await?;
            let took = began.elapsed().as_secs_f64() * 1000.0;
            let document = json!({ "server": server.name, "milliseconds": took });
            let text = |_: &_| format!("{} answered after {took:.1} ms\n", server.name);
            server.session.printer.show(&document, text)?;
        }
        Ok(())
    }

    fn roots(&mut self, paths: Vec<PathBuf>) -> Result<()> {
        if paths.is_empty() {
            let roots: Vec<_> = self.shared.roots.iter().map(|path| root(path)).collect();
            return Printer::new(&self.shared).show(&roots, |_| {
                if roots.is_empty() {
                    return "no folders yet: roots PATH\n".to_owned();
                }
                roots.iter().map(|root| format!("{}\n", one_line(&root.uri))).collect()
            });
        }
        for path in &paths {
            if !path.is_dir() {
                return Err(usage!("{} is no folder", path.display()).into());
            }
        }
        let roots: Vec<_> = paths.iter().map(|path| root(path)).collect();
        let shown: Vec<&str> = roots.iter().map(|root| root.uri.as_str()).collect();
        for server in self.registry.connected() {
            server.client().set_roots(roots.clone()).map_err(|error| exit_error::of_request(&error))?;
            self.say(&server.name, &format!("may ask for {}", shown.join(", ")));
        }
        self.shared.roots = paths;
        Ok(())
    }

    fn show_history(&self) -> Result<()> {
        let history = self.history.lock();
        let lines: Vec<String> = history.shown().collect();
        Printer::new(&self.shared)
            .show(&lines, |_| lines.iter().map(|line| format!("{}\n", one_line(line))).collect::<String>())
    }
}

/// Leaves a server; its end is nothing to be told of.
pub(super) async fn leave(server: &Connected) {
    server.monitor.abort();
    server.session.close().await;
}

/// Says which names would be clear.
pub(super) fn ambiguous(names: &[String]) -> anyhow::Error {
    usage!("several servers have it: write {}", names.join(" or ")).into()
}

impl Shell {
    /// Connects: again to a server of the session, where the word is its name, or else to another one.
    pub(super) async fn connect_typed(&self, words: &[String]) -> Result<()> {
        if let [word] = words
            && let Some(entry) = self.registry.entry(word)
        {
            return self.connect_again(&entry).await;
        }
        let target = target(words)?;
        let before = self.registry.entries().into_iter().find(|entry| entry.target == target);
        match before {
            Some(entry) if !matches!(entry.state, ServerState::Connected(_)) => {
                return self.connect_again(&entry).await;
            }
            // A command starts another process; at one address there is one server.
            Some(entry) if !matches!(target, Target::Command(_)) => {
                // What is connected over HTTP may have become unreachable.
                if condition(&entry).await.0 != entry.state.word() {
                    return self.connect_again(&entry).await;
                }
                self.say(
                    &entry.name,
                    &format!("is connected already; to connect again: connect {}", entry.name),
                );
                return Ok(());
            }
            _ => {}
        }
        let name = self.registry.add(&target);
        let connected = self.connect(&name, &target).await;
        if let Err(error) = &connected
            && matches!(target, Target::Named(_))
            && ExitReason::of(error) == ExitReason::Usage
        {
            // There is no such server, or it may not be started: nothing that a session could have.
            self.registry.remove(&name);
        }
        self.say_connected(connected, &name)
    }

    fn say_connected(&self, connected: Result<()>, name: &str) -> Result<()> {
        connected?;
        let server = self.registry.named(name)?.client().server();
        let called = server.info.as_ref().map(|info| format!(" to {} {}", info.name, info.version));
        self.say(name, &format!("connected{}, {}", called.unwrap_or_default(), server.revision.as_str()));
        Ok(())
    }

    async fn connect_again(&self, entry: &Entry) -> Result<()> {
        self.registry.set(&entry.name, ServerState::Connecting { again: true });
        if let ServerState::Connected(server) = &entry.state {
            leave(server).await;
        }
        self.say_connected(self.connect(&entry.name, &entry.target).await, &entry.name)
    }

    /// Leaves a server.
    pub(super) async fn disconnect(&self, name: &str) -> Result<()> {
        let server = self.registry.named(name)?;
        self.registry.set(name, ServerState::Disconnected);
        leave(&server).await;
        self.say(name, "disconnected");
        Ok(())
    }

    /// Shows every server, and how it is.
    pub(super) async fn servers(&self) -> Result<()> {
        let mut table = Table::new(&["SERVER", "REVISION", "STATE", "TARGET"]);
        let mut document = Vec::new();
        let used = self.registry.used();
        let entries = self.registry.entries();
        let conditions = futures_util::future::join_all(entries.iter().map(condition)).await;
        for (entry, (word, reason)) in entries.iter().zip(conditions) {
            let revision = match &entry.state {
                ServerState::Connected(server) => server.client().server().revision.as_str(),
                _ => "",
            };
            let target = entry.target.to_string();
            let mark = if used.as_ref() == Some(&entry.name) { " *" } else { "" };
            document.push(json!({
                "server": entry.name, "revision": revision, "state": word, "reason": reason, "target": target,
            }));
            let state = described(word, reason.as_deref());
            table.row([&format!("{}{mark}", entry.name), revision, &state, &target]);
        }
        let none = "no servers yet: connect TARGET";
        Printer::new(&self.shared).show(&document, |view| table.render_or(none, view.paint, view.width))
    }
}

/// How a server is. One over HTTP has no connection that could end, so it is asked; the end of any other is noticed.
async fn condition(entry: &Entry) -> (&'static str, Option<String>) {
    let server = match &entry.state {
        ServerState::Connected(server) if is_over_http(server) => server,
        state => return (state.word(), state.reason().map(|why| masked(why).into_owned())),
    };
    match answers(server.client()).await {
        Ok(()) => ("connected", None),
        Err(Some(why)) => ("unreachable", Some(masked(&server.outage.why().unwrap_or(why)).into_owned())),
        Err(None) => ("unresponsive", Some(format!("no answer within {} s", PING_TIMEOUT.as_secs()))),
    }
}

fn is_over_http(server: &Connected) -> bool {
    ["http://", "https://"].iter().any(|scheme| server.client().name().starts_with(scheme))
}
