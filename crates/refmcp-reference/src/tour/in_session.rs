//! The steps while a session is open and no call is in flight: so something happens to a client that only connects and lists.

use std::sync::{Arc, Weak};
use std::time::Duration;

use refmcp_server::model::LogLevel;
use refmcp_server::{LogMessage, ServerRequestError, Session};
use serde_json::json;
use tokio::time::{sleep, timeout};

use super::Tours;
use super::changes::{Lists, change};
use super::in_call::LOGGER;
use super::progress::{Situation, TourProgress};
use super::requests::{Asker, ask};
use super::step::Step;

/// The time that a client has for its own first calls.
const FIRST: Duration = Duration::from_secs(2);
/// How often it is looked for the next step.
const LOOK: Duration = Duration::from_millis(250);
/// The time to answer a ping, without which nothing else is asked.
const PONG: Duration = Duration::from_secs(5);

/// Does the steps of a session until it is over.
pub(super) async fn run(tours: Tours, session: Weak<Session>) {
    sleep(FIRST).await;
    let Some(client) = session.upgrade() else { return };
    let Some(peer) = client.inspect(|engine| engine.peer().cloned()).flatten() else { return };
    let mut done = vec![Step::Ping];
    let run = tours.with(&peer, TourProgress::begin_session);
    if tours.steps.has(Step::Ping) {
        // Every session is asked, since a client may read what belongs to no call in one and not in another.
        let pong = timeout(PONG, client.ping()).await;
        let (how, is_there) = match pong {
            Ok(Ok(())) => ("answered", true),
            Ok(Err(ServerRequestError::Refused(_))) => ("refused", true),
            _ => ("no answer", false),
        };
        tours.with(&peer, |progress| progress.ping_ended(run, how));
        if !is_there {
            return;
        }
    }
    drop(client);
    loop {
        // It is not kept alive while nothing happens.
        let Some(session) = session.upgrade().filter(|session| !session.has_ended()) else { return };
        let Some(is_busy) = session.inspect(|engine| engine.in_flight() > 0) else { return };
        if is_busy {
            drop(session);
            sleep(LOOK).await;
            continue;
        }
        let lists = Lists::Session(session.clone());
        let about = Situation {
            steps: &tours.steps,
            peer: &peer,
            transport: session.connection().transport,
            is_subscribed: lists.is_subscribed(),
            roots_changed: session.roots_changes() > 0,
        };
        if let Some(step) = tours.with(&peer, |progress| progress.next(run, &done, &about)) {
            let how = step_in(step, &session, lists, &about).await;
            tours.with(&peer, |progress| progress.end(step, how));
            done.push(step);
        }
        drop(session);
        sleep(LOOK).await;
    }
}

/// Does a step, and says how it ended.
async fn step_in(step: Step, session: &Arc<Session>, lists: Lists, about: &Situation<'_>) -> String {
    // A session waits for its answers, so none is pending.
    if let Ok(Some(how)) = ask(step, Asker::Session(session), about.peer).await {
        return how;
    }
    if let Some(how) = change(step, lists).await {
        return how;
    }
    for level in LogLevel::ALL {
        let data = json!({ "tour": "logs", "level": level });
        session.log(LogMessage { level, logger: Some(LOGGER.to_owned()), data }).await;
    }
    "sent".to_owned()
}
