//! `connect`, `disconnect` and `servers`: which servers the session has, and how they are.

use anyhow::Result;
use serde_json::json;

use super::commands::target;
use super::run::{Shell, leave};
use super::servers::{Connected, Entry};
use super::servers::{ServerState, described};
use crate::args::{ExitReason, Target};
use crate::command::client::output::Printer;
use crate::command::client::watch::{ANSWERS_WITHIN, answers};
use crate::ui::redact::masked;
use crate::ui::render::table::Table;
use crate::ui::text::one_line;

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
        if let Err(fault) = &connected
            && matches!(target, Target::Named(_))
            && ExitReason::of(fault) == ExitReason::Usage
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
            table.row(vec![
                format!("{}{mark}", one_line(&entry.name)),
                revision.to_owned(),
                one_line(&described(word, reason.as_deref())).into_owned(),
                one_line(&target).into_owned(),
            ]);
        }
        Printer::new(&self.shared).show(&document, |view| {
            if document.is_empty() {
                return "no servers yet: connect TARGET\n".to_owned();
            }
            table.render(view.paint, view.width)
        })
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
        Err(None) => ("unresponsive", Some(format!("no answer within {} s", ANSWERS_WITHIN.as_secs()))),
    }
}

fn is_over_http(server: &Connected) -> bool {
    ["http://", "https://"].iter().any(|scheme| server.client().name().starts_with(scheme))
}
