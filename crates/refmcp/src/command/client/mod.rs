//! Commands that drive a server.

pub(crate) mod apps;
mod budget;
pub(crate) mod call;
mod connect;
mod consent;
pub(crate) mod exit_error;
pub(crate) mod extra_methods;
mod hint;
mod host;
mod ignored_input;
pub(crate) mod list;
pub(crate) mod models;
pub(crate) mod output;
pub(crate) mod requests;
mod server_stderr;
mod session;
mod skills;
mod tasks;
pub(crate) mod watch;

use std::io;
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::Result;
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

use crate::args::{
    BridgeSide, ClientCommand, ExitReason, OutputFormat, SessionCommand, SharedOptions, Target, UsageError,
};
use crate::bridge;
use crate::command::{auth, check, replay};
use crate::signals::{Signal, Signals};
use crate::ui::progress::Bars;
pub(crate) use connect::{Server, Servers, remembered, warn_once};
pub(crate) use host::{Person, root};
pub(crate) use server_stderr::LastLines;
pub(crate) use session::Session;

/// Runs a command until it is done or a signal ends it.
pub(crate) fn run(command: ClientCommand, shared: &SharedOptions) -> Result<ExitReason> {
    let runtime = runtime(&command)?;
    let target = command.target().cloned();
    // A session that is typed hears signals itself: there, ctrl-c ends a call and not the session.
    let hears_itself = matches!(command, ClientCommand::Shell { .. });
    let signal = OnceLock::new();
    let done = runtime.block_on(async {
        let stopped = CancellationToken::new();
        if hears_itself {
            return carry_out(command, shared, &stopped).await;
        }
        // Before anything else: what is under way must not be cut off for want of a listener.
        let signals = Signals::new()?;
        tokio::select! {
            done = carry_out(command, shared, &stopped) => done,
            () = stop_in_order(signals, &stopped, &signal) => Err(exit_error::interrupted()),
        }
    });
    // Whatever was under way, it ended for the signal.
    let done = match (signal.get(), done) {
        (Some(signal), Ok(_)) => Ok(signal.reason()),
        (Some(signal), Err(_)) => Err(exit_error::stopped(*signal)),
        (None, done) => done,
    };
    // A thread that reads the terminal cannot be ended otherwise.
    runtime.shutdown_background();
    done.map_err(|error| auth::hinted(error, target.as_ref()))
}

/// One thread is enough for one person, and a process with one is sooner ready; a bridge may serve a crowd.
fn runtime(command: &ClientCommand) -> io::Result<Runtime> {
    let mut builder = match command {
        ClientCommand::Bridge { .. } | ClientCommand::Check(..) | ClientCommand::Replay { .. } => {
            Builder::new_multi_thread()
        }
        _ => Builder::new_current_thread(),
    };
    builder.enable_all().build()
}

/// When we are told to stop, lets whatever is going on end in order, for a while.
async fn stop_in_order(mut signals: Signals, stopped: &CancellationToken, signal: &OnceLock<Signal>) {
    let first = signals.next().await;
    // It is set here alone.
    let _ = signal.set(first);
    stopped.cancel();
    tokio::select! {
        () = tokio::time::sleep(CLOSE_TIMEOUT) => {}
        // Told twice, it does not wait.
        _ = signals.next() => {}
    }
}

/// How long a connection to a server that does not answer may take to end in order.
const HURRIED_CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

/// How long a connection may take to end in order after a signal.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(6);

async fn carry_out(
    command: ClientCommand,
    shared: &SharedOptions,
    stopped: &CancellationToken,
) -> Result<ExitReason> {
    match command {
        ClientCommand::Auth(command) => tokio::select! {
            done = auth::run(command, shared) => done,
            () = stopped.cancelled() => Err(exit_error::interrupted()),
        },
        ClientCommand::Shell { targets } => crate::shell::run(&targets, shared).await,
        ClientCommand::Bridge { from, to } => {
            if from == BridgeSide::Stdio && shared.output != OutputFormat::Text {
                let what = "standard output is the client's: write messages to a file with --record";
                return Err(UsageError::new(what).into());
            }
            let person = Person::new(shared, &Bars::hidden());
            let server = Servers::new(shared, &person)?.find(&to).await?;
            let target = bridge::Target {
                connector: server.connector,
                observer: server.observer,
                version: shared.protocol_version,
                open_timeout: shared.timeout,
                meta: shared.meta.iter().map(|(key, value)| (key.clone(), value.clone().into())).collect(),
            };
            let done = match &from {
                BridgeSide::Stdio => bridge::serve_stdio(target, &server.last_lines, stopped).await,
                BridgeSide::Listen { url, transport, listen } => {
                    let as_json = shared.output == OutputFormat::Json;
                    let front = bridge::Front { url, transport: *transport, listen, as_json };
                    bridge::serve_listener(&front, target, &server.last_lines, stopped).await
                }
            };
            done.map(|()| ExitReason::Done)
        }
        ClientCommand::Check(target, options) => tokio::select! {
            done = check::run(&target, &options, shared) => done,
            () = stopped.cancelled() => Err(exit_error::interrupted()),
        },
        ClientCommand::Replay { file, using, options } => {
            replay::run(&file, &using, &options, shared, stopped).await
        }
        ClientCommand::InSession(target, command) => in_session(&command, &target, shared, stopped).await,
    }
}

/// Connects to a server, carries the command out, and leaves.
async fn in_session(
    command: &SessionCommand,
    target: &Target,
    shared: &SharedOptions,
    stopped: &CancellationToken,
) -> Result<ExitReason> {
    let bars = Bars::on_stderr();
    let person = Person::new(shared, &bars);
    let session = tokio::select! {
        session = Session::open(target, shared, &person, &bars) => session?,
        () = stopped.cancelled() => return Err(exit_error::interrupted()),
    };
    let done = tokio::select! {
        done = run_in(command, &session) => done,
        () = stopped.cancelled() => match command {
            // A signal is the usual end of watching.
            SessionCommand::Watch { .. } => Ok(ExitReason::Done),
            _ => Err(exit_error::interrupted()),
        },
    };
    match done.as_ref().map_err(ExitReason::of) {
        // A server that gave no answer in time is not waited for once more; a program is ended in any case.
        Err(ExitReason::Unreachable) if !matches!(target, Target::Command(_) | Target::Named(_)) => {
            if tokio::time::timeout(HURRIED_CLOSE_TIMEOUT, session.close()).await.is_err() {
                tracing::debug!("the server was left without a farewell");
            }
        }
        _ => session.close().await,
    }
    done
}

async fn run_in(command: &SessionCommand, session: &Session) -> Result<ExitReason> {
    match command {
        SessionCommand::Call { tool, arguments } => return call::call(session, tool, arguments).await,
        SessionCommand::CallAsTask { tool, arguments, is_detached } => {
            return tasks::call(session, tool, arguments, *is_detached).await;
        }
        SessionCommand::Task(command) => return tasks::run(session, command).await,
        SessionCommand::List { what, names } => return list::list(session, *what, names).await,
        SessionCommand::Skills(command) => return skills::run(session, command).await,
        SessionCommand::Read { uri } => requests::read(session, uri).await,
        SessionCommand::Prompt { name, arguments } => requests::prompt(session, name, arguments).await,
        SessionCommand::Complete { of, argument, prefix, context } => {
            requests::complete(session, of, argument, prefix, context).await
        }
        SessionCommand::Watch { uris } => watch::watch(session, uris).await,
        SessionCommand::Info => requests::info(session),
        SessionCommand::SelectModel { name } => models::select(session, name).await,
        SessionCommand::ListApps => apps::list(session).await,
        SessionCommand::ShowApp { app } => apps::show(session, app).await,
        SessionCommand::Metadata => requests::metadata(session).await,
        SessionCommand::Raw { method, params } => requests::raw(session, method, params.as_deref()).await,
        SessionCommand::SetLevel { level } => requests::set_level(session, *level).await,
    }
    .map(|()| ExitReason::Done)
}
