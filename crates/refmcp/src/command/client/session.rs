//! One server that a command talks to, and the person in front of the terminal.

use std::sync::{Arc, OnceLock};

use anyhow::Result;
use refmcp_client::model::{LogLevel, ServerNotification};
use refmcp_client::{Client, Era, Event};
use tokio::sync::broadcast;

use super::connect::{Servers, remember, remembered};
use super::fault;
use super::host::{Person, host};
use super::models;
use super::output::Printer;
use crate::args::{Output, Shared, Target, TargetName};
use crate::ui::progress::Bars;
use crate::ui::render;

/// Events that are kept for a listener who is slow.
const KEPT_EVENTS: usize = 4096;

/// A connected server, and how to show what it says.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) client: Client,
    pub(crate) printer: Printer,
    pub(crate) person: Person,
    pub(crate) bars: Bars,
    pub(crate) shared: Shared,
    /// What the server is called in logs and in what was decided about its tools.
    pub(crate) name: TargetName,
    /// What happens without being asked for.
    pub(crate) events: Events,
}

impl Session {
    /// Connects to a server.
    pub(crate) async fn open(target: &Target, shared: &Shared, person: &Person, bars: &Bars) -> Result<Self> {
        let server = Servers::new(shared, person)?.beside(bars).find(target).await?;
        let printer = Printer::new(shared);
        let events = Events::default();
        let listen = listener(printer.clone(), bars.clone(), events.clone());
        let host = host(shared, person, &server.name.to_string()).on_event(listen);
        let mut builder = Client::builder("refmcp", env!("CARGO_PKG_VERSION"))
            .host(host)
            .era(shared.era)
            .timeout(shared.timeout)
            .total_timeout(shared.total_timeout)
            .open_timeout(shared.timeout)
            .meta(shared.meta.iter().map(|(key, value)| (key.clone(), value.clone().into())).collect());
        if let Some(revision) = remembered(&server.name) {
            builder = builder.spoken(&server.connector.name(), revision);
        }
        let client = builder.connect_to(server.connector).await;
        let client = client.map_err(|fault| fault::of_connecting(&fault, &server.last_lines))?;
        // What somebody insisted on says nothing about what the server would rather speak.
        if shared.era == Era::Auto {
            remember(&server.name, &client);
        }
        let (person, bars, shared) = (person.clone(), bars.clone(), shared.clone());
        let session = Self { client, printer, person, bars, shared, name: server.name, events };
        if let Some(level) = session.shared.log_level {
            session.set_level(level).await?;
        }
        if let Some(model) = &session.shared.model {
            models::select_quietly(&session, model).await?;
        }
        Ok(session)
    }

    /// From which level on the server's log messages are wanted.
    pub(crate) async fn set_level(&self, level: LogLevel) -> Result<()> {
        self.client.set_log_level(level).await.map_err(|fault| fault::of_request(&fault))
    }

    /// Ends the connection in order.
    pub(crate) async fn close(&self) {
        self.client.close().await;
    }
}

/// Log messages are shown as they come; the rest is for whoever listens.
fn listener(printer: Printer, bars: Bars, events: Events) -> impl Fn(&Event) + Send + Sync {
    move |event| {
        match event {
            Event::Told(ServerNotification::Log(log)) if printer.output() == Output::Text => {
                bars.say(&render::log_message(log, printer.view()));
            }
            Event::Finding(finding) if finding.is_violation() => {
                tracing::warn!(rule = finding.rule, "the server: {}", finding.what);
            }
            Event::Finding(finding) => tracing::info!(rule = finding.rule, "the server: {}", finding.what),
            _ => {}
        }
        events.tell(event);
    }
}

/// What happens without being asked for, for whoever listens. The room for it is made when somebody does: it is
/// large, and most commands never listen.
#[derive(Debug, Clone, Default)]
pub(crate) struct Events {
    sender: Arc<OnceLock<broadcast::Sender<Event>>>,
}

impl Events {
    /// Listens from now on.
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Event> {
        self.sender.get_or_init(|| broadcast::Sender::new(KEPT_EVENTS)).subscribe()
    }

    fn tell(&self, event: &Event) {
        if let Some(sender) = self.sender.get() {
            // Whoever listened may have left.
            let _ = sender.send(event.clone());
        }
    }
}
