//! One server that a command talks to, and the person in front of the terminal.

use std::future::IntoFuture;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::Result;
use refmcp_client::model::{LogLevel, ServerNotification};
use refmcp_client::{
    CallError, Client, ConnectError, Error, Event, Listable, OpenError, Request, VersionPolicy,
};
use serde::de::DeserializeOwned;
use tokio::sync::broadcast;

use super::budget::Budget;
use super::connect::{Servers, remember, remembered};
use super::exit_error;
use super::hint;
use super::host::{Person, host};
use super::ignored_input::IgnoredInput;
use super::models;
use super::output::Printer;
use crate::args::{ExitError, ExitReason, OutputFormat, SharedOptions, Target, TargetName, UrlTransport};
use crate::ui::error::reworded;
use crate::ui::output::print_aside;
use crate::ui::progress::Bars;
use crate::ui::render;
use crate::ui::text::one_line;
use refmcp_proto::revision::Method;
use refmcp_proto::rule::Level;

/// How much later than the opening itself its end may come.
const LATEST: Duration = Duration::from_millis(500);

/// Events that are kept for a listener who is slow.
const KEPT_EVENTS: usize = 4096;

/// A connected server, and how to show what it says.
pub(crate) struct Session {
    pub(crate) client: Client,
    pub(crate) printer: Printer,
    pub(crate) person: Person,
    pub(crate) bars: Bars,
    pub(crate) shared: SharedOptions,
    /// What the server is called in logs and in what was decided about its tools.
    pub(crate) name: TargetName,
    /// What happens without being asked for.
    pub(crate) events: Events,
    /// What is left of the time for the command.
    pub(crate) budget: Budget,
    ignored: Arc<IgnoredInput>,
}

impl Session {
    /// Connects to a server.
    pub(crate) async fn open(
        target: &Target,
        shared: &SharedOptions,
        person: &Person,
        bars: &Bars,
    ) -> Result<Self> {
        let server = Servers::new(shared, person)?.beside(bars).find(target).await?;
        let printer = Printer::new(shared);
        let budget = Budget::new(shared);
        let events = Events::default();
        let address = server.connector.name();
        let ignored = Arc::new(IgnoredInput::new(bars, !Target::is_url(&address), &budget));
        let listen = listener(printer.clone(), bars.clone(), events.clone(), ignored.clone());
        let host = host(shared, person, &server.name.to_string()).on_event(listen);
        let mut builder = Client::builder("refmcp", env!("CARGO_PKG_VERSION"))
            .host(host)
            .version_policy(shared.protocol_version)
            .timeout(shared.timeout)
            .total_timeout(shared.total_timeout)
            .open_timeout(budget.silence())
            .meta(shared.meta.iter().map(|(key, value)| (key.clone(), value.clone().into())).collect());
        if let Some(revision) = remembered(&server.name) {
            builder = builder.known_revision(&server.connector.name(), revision);
        }
        if let Some(observer) = server.observer {
            builder = builder.observer(observer);
        }
        let connecting = budget.spend(builder.connect_to(server.connector));
        // Without a terminal no person logs in, so everything that is waited for is on the command's time.
        let is_far = matches!(target, Target::Url { .. }) && !person.is_there();
        let connected = if is_far {
            let limit = budget.silence() + LATEST;
            let over = |_| ExitError::new(ExitReason::Unreachable, format!("{address}: {}", budget.over()));
            tokio::time::timeout(limit, connecting).await.map_err(over)?
        } else {
            connecting.await
        };
        let client = match connected {
            Ok(client) => client,
            Err(why) => {
                ignored.failed(&why.to_string());
                ignored.release();
                let error = exit_error::of_connecting(&why, &server.last_lines);
                let hint = match ignored.first_line() {
                    // It is alive, but what it says is not the protocol.
                    Some(line) if is_timeout(&why) => {
                        Some(format!("it wrote what is no message: {}", one_line(&line)))
                    }
                    _ => {
                        let is_sse = matches!(target, Target::Url { transport: UrlTransport::Sse, .. });
                        hint::of_connecting(&address, is_sse, &why).await
                    }
                };
                return Err(match hint {
                    Some(hint) => {
                        let said = error.to_string();
                        let between = if said.contains('\n') { "\n" } else { "; " };
                        reworded(&error, format!("{said}{between}{hint}"))
                    }
                    None => error,
                });
            }
        };
        // A revision that was demanded says nothing about what the server prefers.
        if shared.protocol_version == VersionPolicy::Auto {
            remember(&server.name, &client);
        }
        let (person, bars, shared) = (person.clone(), bars.clone(), shared.clone());
        let name = server.name;
        let session = Self { client, printer, person, bars, shared, name, events, budget, ignored };
        if let Some(level) = session.shared.log_level {
            session.want_log(level).await?;
        }
        if let Some(model) = &session.shared.model {
            models::select_quietly(&session, model).await?;
        }
        Ok(session)
    }

    /// From which level on the server's log messages are wanted.
    pub(crate) async fn set_level(&self, level: LogLevel) -> Result<()> {
        let set = self.budget.within(self.client.set_level(level)).await;
        set.map_err(|error| self.fault(Method::SetLevel.name(), &error))
    }

    /// Asks for log messages beside what is wanted; a server that has none is no reason not to go on.
    async fn want_log(&self, level: LogLevel) -> Result<()> {
        match self.set_level(level).await {
            Err(error) if self.client.server().capabilities.logging.is_none() => {
                self.bars.say(&format!("refmcp: --log-level has no effect: {error:#}\n"));
                Ok(())
            }
            done => done,
        }
    }

    /// Says something about a result on stderr, before the result is shown; nothing where programs read it.
    pub(crate) fn remark(&self, what: &str) {
        if self.printer.output() == OutputFormat::Text {
            print_aside(&format!("{what}\n"));
        }
    }

    /// Makes a request, on what is left of the command's time; progress gives it the whole time once more.
    pub(crate) async fn ask<R: DeserializeOwned + Send + 'static>(
        &self,
        request: Request<R>,
    ) -> Result<R, Error> {
        let request = request.timeout(self.budget.silence()).total_timeout(self.budget.total());
        self.budget.spend(request.into_future()).await
    }

    /// A whole list, on what is left of the command's time.
    pub(crate) async fn list<T: Listable>(&self) -> Result<Vec<T>, Error> {
        self.budget.within(self.client.pages().all()).await
    }

    /// Why a request of this method brought no result.
    pub(crate) fn fault(&self, method: &str, error: &Error) -> anyhow::Error {
        self.ignored.failed(&error.to_string());
        match error {
            Error::Call(CallError::TimedOut { .. }) => {
                let what = match self.ignored.first_line() {
                    // More time would not help.
                    Some(line) => format!("{}; it wrote what is no message: {line}", self.budget.no_answer()),
                    None => self.budget.over(),
                };
                ExitError::new(ExitReason::Unreachable, one_line(&what)).into()
            }
            error => {
                let capabilities = &self.client.server().capabilities;
                let said = exit_error::of_method(method, capabilities, error);
                match error.rpc().and_then(hint::of_capability) {
                    Some(hint) => reworded(&said, format!("{said}; {hint}")),
                    None => said,
                }
            }
        }
    }

    /// Ends the connection in order.
    pub(crate) async fn close(&self) {
        self.client.close().await;
        self.ignored.release();
    }
}

/// Whether the server gave no answer in time.
fn is_timeout(why: &ConnectError) -> bool {
    matches!(why.why(), OpenError::TimedOut { .. })
}

/// Log messages are shown as they come; the rest goes to subscribers.
fn listener(
    printer: Printer,
    bars: Bars,
    events: Events,
    ignored: Arc<IgnoredInput>,
) -> impl Fn(&Event) + Send + Sync {
    move |event| {
        match event {
            Event::Notification(ServerNotification::Log(log)) if printer.output() == OutputFormat::Text => {
                bars.say(&render::log_message(log, printer.view()));
            }
            Event::Ignored(what) => ignored.tell(what),
            // A user wants to know of broken recommendations, too.
            Event::Finding(finding)
                if finding.rule.level != Level::Note && !ignored.is_latest(&finding.what) =>
            {
                tracing::warn!(rule = finding.rule.id, "{}: {finding}", bars.server());
            }
            Event::Finding(finding) => tracing::info!(rule = finding.rule.id, "{}: {finding}", bars.server()),
            _ => {}
        }
        events.tell(event);
    }
}

/// Events for subscribers. The buffer is allocated with the first subscriber: it is
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
            // The subscriber may have left.
            let _ = sender.send(event.clone());
        }
    }
}
