//! `shell`: a session with one or several servers, typed line by line.
//!
//! One thread reads lines when it is asked for one, and one shows what comes beside them; commands are carried out
//! here, one after the other. The terminal belongs to the line while it is typed: questions of servers wait until it
//! is entered.

mod catalog;
mod commands;
mod complete;
mod editor;
mod history;
mod monitor;
mod notices;
mod resources;
mod run;
mod servers;

use std::io::{self, IsTerminal};
use std::pin::pin;
use std::sync::Arc;

use anyhow::Result;
use parking_lot::Mutex;
use refmcp_client::RpcError;
use tokio::runtime::Handle;

use crate::args::{ExitError, ExitReason, OutputFormat, SharedOptions, Target, UsageError};
use crate::command::client::{Person, Servers, exit_error, warn_once};
use crate::config::usual_files;
use crate::logging;
use crate::signals::{Signal, Signals};
use crate::ui::error::{document, rpc_of};
use crate::ui::output::{print_aside, reader_left};
use crate::ui::progress::Bars;
use crate::ui::redact::masked;
use crate::ui::style::Paint;
use crate::ui::text::{multi_line, one_line};
use commands::{Command, parse};
use editor::{Lines, TerminalGuard, Typed};
use history::History;
use notices::Notices;
use run::Shell;
use servers::ServerRegistry;

/// Runs until the user leaves. A script ends as the last of its commands that failed.
pub(crate) async fn run(targets: &[Target], shared: &SharedOptions) -> Result<ExitReason> {
    let mut signals = Signals::new()?;
    let _kept = TerminalGuard::now();
    let mut shell = new_shell(shared)?;
    let beside = shell.notices.clone();
    let _log = logging::redirect(move |line| beside.say(line.to_owned()));
    let known = configured(shared, &shell.person, targets.is_empty())?;
    shell.registry.set_configured(known.clone());
    let from_files: Vec<Target> = known.into_iter().map(Target::Named).collect();
    let connected = tokio::select! {
        connected = connect_all(&shell, if targets.is_empty() { &from_files } else { targets }) => Ok(connected),
        signal = signals.next() => Err(signal),
    };
    let ended = match connected {
        Err(signal) => Err(exit_error::stopped(signal)),
        Ok(Ok(())) => Box::pin(converse(&mut shell, &mut signals)).await,
        // Where no server was named, the person can still say which one it should be.
        Ok(Err(error)) if targets.is_empty() && io::stdin().is_terminal() => {
            complain(shared, &format!("{error:#}; to connect: connect TARGET"), ExitReason::of(&error), None);
            Box::pin(converse(&mut shell, &mut signals)).await
        }
        Ok(Err(error)) => Err(error),
    };
    shell.close().await;
    shell.notices.shown().await;
    ended
}

fn new_shell(shared: &SharedOptions) -> Result<Shell> {
    let bars = Bars::on_stderr();
    let notices = Notices::start(bars.clone())?;
    let beside = notices.clone();
    let person = Person::typing(shared, &bars, move || {
        if beside.is_typing() {
            beside.say("A server asks something: press Enter to see it.\n".to_owned());
        }
    });
    let shared = SharedOptions { roots_may_come: true, ..shared.clone() };
    let history = Arc::new(Mutex::new(History::default()));
    Ok(Shell { registry: ServerRegistry::default(), shared, person, bars, notices, history })
}

/// All servers that configuration files name; where they are all there is, there must be one.
fn configured(shared: &SharedOptions, person: &Person, wanted: bool) -> Result<Vec<String>> {
    let servers = Servers::new(shared, person)?;
    let known = match if wanted { servers.known(None) } else { servers.read_files() } {
        Ok(known) => known,
        Err(error) if wanted => return Err(error),
        Err(error) => {
            tracing::debug!("what configuration files name is not known: {error:#}");
            return Ok(Vec::new());
        }
    };
    let broken = known.problems.iter().filter(|problem| problem.is_of_whole_file());
    let usable = known.servers.iter().filter(|entry| !entry.disabled);
    let names: Vec<String> = usable.map(|entry| entry.name.clone()).collect();
    if wanted && names.is_empty() {
        let places: Vec<String> = match &shared.config {
            Some(file) => vec![file.display().to_string()],
            None => usual_files().iter().map(|place| place.display().to_string()).collect(),
        };
        let what = "missing: a target or a command after `--`; no server that may be used is named in";
        let what = format!("{what} {}", places.join(", "));
        let broken = broken.map(ToString::to_string);
        return Err(
            UsageError::new(std::iter::once(what).chain(broken).collect::<Vec<_>>().join("; ")).into()
        );
    }
    if wanted {
        warn_once(broken);
    }
    Ok(names)
}

/// Connects to all at once; one that fails does not stop the others.
async fn connect_all(shell: &Shell, targets: &[Target]) -> Result<()> {
    let attempts = targets.iter().map(|target| async {
        let name = shell.registry.add(target);
        let connected = shell.connect(&name, target).await;
        connected.map_err(|error| (name, error))
    });
    let faults: Vec<_> =
        futures_util::future::join_all(attempts).await.into_iter().filter_map(Result::err).collect();
    for (name, error) in &faults {
        complain(&shell.shared, &format!("{name}: {error:#}"), ExitReason::of(error), rpc_of(error));
    }
    match faults.last() {
        Some((_, error)) if shell.registry.connected().is_empty() => {
            Err(ExitError::new(ExitReason::of(error), "no server could be connected").into())
        }
        _ => Ok(()),
    }
}

/// Takes line after line.
async fn converse(shell: &mut Shell, signals: &mut Signals) -> Result<ExitReason> {
    let is_typed = io::stdin().is_terminal();
    let mut lines = if is_typed { edited(shell)? } else { Lines::plain()? };
    let mut failure = ExitReason::Done;
    if is_typed && shell.shared.output == OutputFormat::Text {
        let names: Vec<String> =
            shell.registry.connected().iter().map(|server| server.name.clone()).collect();
        let connected = if names.is_empty() {
            "not connected".to_owned()
        } else {
            format!("connected: {}", names.join(", "))
        };
        shell.notices.say(format!("{}; `help` lists the commands\n", one_line(&connected)));
    }
    let mut reader_left = pin!(reader_left());
    loop {
        shell.notices.shown().await;
        lines.ask(shell.prompt());
        let line = loop {
            tokio::select! {
                // A line that is there is done first.
                biased;
                typed = lines.typed() => break typed,
                () = &mut reader_left => return Ok(if is_typed { ExitReason::Done } else { failure }),
                // The line editor handles ctrl-c itself.
                signal = signals.next() => if !is_typed || signal != Signal::Interrupt {
                    return Err(exit_error::stopped(signal));
                },
            }
        };
        let line = match line {
            Typed::Line(line) => line,
            Typed::Interrupted => continue,
            Typed::End if is_typed => {
                // The line that was not typed ends here.
                print_aside("\n");
                return Ok(ExitReason::Done);
            }
            Typed::End => return Ok(failure),
            Typed::Unreadable(what) => {
                failure = ExitReason::Usage;
                complain(&shell.shared, &what, failure, None);
                continue;
            }
            Typed::Fault(what) => return Err(ExitError::new(ExitReason::Failed, what).into()),
        };
        let done = match parse(&line) {
            Ok(None) => continue,
            Ok(Some(Command::Exit)) => return Ok(if is_typed { ExitReason::Done } else { failure }),
            Ok(Some(command)) => tokio::select! {
                done = Box::pin(shell.run(command)) => done,
                signal = signals.next() => match signal {
                    Signal::Interrupt if is_typed => Err(ExitError::new(ExitReason::Failed, "cancelled").into()),
                    _ => return Err(exit_error::stopped(signal)),
                },
            },
            Err(error) => Err(error.into()),
        };
        match done {
            Ok(ExitReason::Done) => {}
            Ok(reason) => failure = reason,
            Err(error) => {
                failure = ExitReason::of(&error);
                complain(&shell.shared, &format!("{error:#}"), failure, rpc_of(&error));
            }
        }
    }
}

/// Lines that are edited, with completion.
fn edited(shell: &Shell) -> Result<Lines> {
    *shell.history.lock() = History::load(shell.shared.mask_arguments);
    let (runtime, registry) = (Handle::current(), shell.registry.clone());
    let complete =
        move |line: &str, position| runtime.block_on(complete::complete(line, position, &registry));
    let (person, typing) = (shell.person.clone(), shell.notices.typing());
    let (lines, above) = Lines::edited(Box::new(complete), shell.history.clone(), person, typing)?;
    shell.notices.show_by(above);
    Ok(lines)
}

/// Says what went wrong; an error may quote what a server said.
fn complain(shared: &SharedOptions, what: &str, reason: ExitReason, rpc: Option<&RpcError>) {
    let line = if shared.output == OutputFormat::Text {
        let paint = Paint::for_stream(&io::stderr(), shared.no_color);
        format!("{} {}\n", paint.wrong("error:"), multi_line(&masked(what)))
    } else {
        format!("{}\n", document(what, reason, rpc))
    };
    // In one piece, so that nothing comes in between.
    print_aside(&line);
}
