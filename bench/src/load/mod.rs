//! What is done to servers, each giving one line of JSON.

mod calls;
mod fanout;
mod sessions;

use anyhow::{Result, ensure};

pub use calls::{calls, exactly, first_answer};
pub use fanout::{bare_fanout, fanout};
pub use sessions::{sessions, streams};

use crate::request::{self, Mode, Writer};
use crate::swarm::{Carries, Swarm};

/// Makes every connection ready for calls, and gives the ids of their sessions where there are some.
fn open(swarm: &mut Swarm, writer: Writer) -> Result<Vec<Option<String>>> {
    let mut ids = vec![None; swarm.len()];
    match writer.mode {
        Mode::Plain | Mode::Modern => {}
        Mode::Session | Mode::Task => {
            let hello = writer.post(&request::initialize(), None);
            swarm.each(
                0,
                |_| hello.clone(),
                |index, answer| {
                    answer.expect_result()?;
                    ids[index] = answer.session.map(str::to_owned);
                    ensure!(ids[index].is_some(), "a session without an id: {}", answer.shown());
                    Ok(())
                },
            )?;
            let initialized = |index: usize| writer.post(request::INITIALIZED, ids[index].as_deref());
            swarm.each(0, initialized, |_, answer| {
                ensure!(answer.status == 202, "refused: {}", answer.shown());
                Ok(())
            })?;
        }
        Mode::WebSocket => {
            swarm.each(
                0,
                |_| writer.upgrade(),
                |_, answer| {
                    ensure!(answer.status == 101, "no WebSocket: {}", answer.shown());
                    Ok(())
                },
            )?;
            for index in 0..swarm.len() {
                swarm.carries(index, Carries::Frames);
            }
            let hello = request::frame(&request::initialize());
            swarm.each(0, |_| hello.clone(), |_, answer| answer.expect_result())?;
            for index in 0..swarm.len() {
                swarm.send(index, &request::frame(request::INITIALIZED))?;
            }
        }
    }
    Ok(ids)
}
