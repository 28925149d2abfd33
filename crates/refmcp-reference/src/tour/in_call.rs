//! The steps at the beginning of calls. A call runs again when the client has answered a request, so what must not happen
//! twice is done `once`.

use std::time::Duration;

use refmcp_server::model::LogLevel;
use refmcp_server::{Call, CallError};
use serde::Deserialize;
use serde_json::json;
use tokio::time::sleep;

use super::changes::{Lists, change};
use super::progress::{Run, Situation};
use super::requests::{Asker, ask};
use super::step::Step;
use super::{Tours, tool};

/// Who speaks in log messages.
pub(super) const LOGGER: &str = "refmcp-tour";
/// Progress notifications of a step, and the time between two of them where the step is slow.
const STEPS: u32 = 6;
const SLOW_STEP: Duration = Duration::from_secs(1);
/// The time until a response is a stream of events, and the time that its client is away at least.
const BECOMES_STREAM: Duration = Duration::from_millis(400);
const AWAY: Duration = Duration::from_millis(300);
/// How often it is looked whether the session has no calls, and how often at the most.
const IDLE_LOOK: Duration = Duration::from_millis(100);
const IDLE_LOOKS: u32 = 600;

/// Does the steps that are due in this call.
pub(super) async fn before(tours: Tours, call: Call) -> Result<(), CallError> {
    let run = run_of(&tours, &call).await?;
    let mut done = Vec::new();
    loop {
        let about = situation(&tours, &call);
        let Some(step) = tours.with(call.peer(), |progress| progress.next(run, &done, &about)) else { break };
        let how = step_in(step, &call).await?;
        tours.with(call.peer(), |progress| progress.end(step, how));
        done.push(step);
    }
    Ok(())
}

/// The run of a call; the same whenever its handler runs again.
pub(super) async fn run_of(tours: &Tours, call: &Call) -> Result<Run, CallError> {
    #[derive(Deserialize)]
    struct Named {
        name: String,
    }
    call.once("tour/run", async {
        let called: Named = serde_json::from_str(call.params())?;
        Ok(tours.with(call.peer(), |progress| progress.begin_call(called.name == tool::NAME)))
    })
    .await
}

/// The situation of the client of a call. It asks the engine, whose lock is never taken under that of the tours.
pub(super) fn situation<'a>(tours: &'a Tours, call: &'a Call) -> Situation<'a> {
    Situation {
        steps: &tours.steps,
        peer: call.peer(),
        transport: call.connection().transport,
        is_subscribed: Lists::of(call).is_subscribed(),
        roots_changed: call.session().is_some_and(|session| session.roots_changes() > 0),
    }
}

/// Does a step, and says how it ended.
async fn step_in(step: Step, call: &Call) -> Result<String, CallError> {
    if let Some(how) = ask(step, Asker::Call(call), call.peer()).await? {
        return Ok(how);
    }
    call.once(&format!("tour/{step}"), async {
        if let Some(how) = change(step, Lists::of(call)).await {
            return Ok(how);
        }
        match step {
            Step::Progress => progress(call, 0, Duration::ZERO).await,
            Step::Slow => progress(call, 1, SLOW_STEP).await,
            Step::Logs => {
                for level in LogLevel::ALL {
                    call.log(level, LOGGER, json!({ "tour": "logs", "level": level })).await;
                }
            }
            Step::Cut => {
                sleep(BECOMES_STREAM).await;
                call.close_stream();
                sleep(AWAY).await;
            }
            Step::Expiry => end_session(call),
            _ => {}
        }
        Ok(match step {
            Step::Progress if !call.wants_progress() => "the call has no progress token",
            Step::Expiry => "the session ends after this call",
            _ => "sent",
        }
        .to_owned())
    })
    .await
}

/// Tells of progress below 1, so that the tool can go on with its own: values have to grow.
async fn progress(call: &Call, part: u32, every: Duration) {
    for step in 1..=STEPS {
        sleep(every).await;
        let value = f64::from(part * STEPS + step) / 1000.0;
        call.progress(value, None, format!("the tour: {step} of {STEPS}")).await;
    }
}

/// Ends the session once the client has its responses.
fn end_session(call: &Call) {
    let Some(session) = call.session().cloned() else { return };
    tokio::spawn(async move {
        for _ in 0..IDLE_LOOKS {
            sleep(IDLE_LOOK).await;
            if session.inspect(|engine| engine.in_flight() > 0) != Some(true) {
                break;
            }
        }
        session.end();
    });
}
