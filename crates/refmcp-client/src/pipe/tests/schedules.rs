//! Senders and the writing task of an outbox in thousands of orders, before a pipe that takes as much as it likes.

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use parking_lot::Mutex;
use refmcp_testkit::schedule::{explore, step};

use super::super::outbox::{HIGH_WATER, Outbox};
use super::*;

/// Schedules of each scenario.
const SEEDS: std::ops::Range<u64> = 0..500;

/// What has come out of a pipe, and what is still in its writer.
#[derive(Debug, Default)]
struct Written {
    messages: Vec<Vec<u8>>,
    is_closed: bool,
}

/// A writer whose flush takes one message at a time, some of them not at once, and may break.
#[derive(Debug)]
struct SlowWriter {
    queue: Vec<Vec<u8>>,
    written: Arc<Mutex<Written>>,
    breaks_after: Option<usize>,
}

impl FrameWriter for SlowWriter {
    fn push(&mut self, json: &[u8]) {
        self.queue.push(json.to_vec());
    }

    fn pending(&self) -> usize {
        self.queue.iter().map(Vec::len).sum()
    }

    async fn flush(&mut self) -> io::Result<()> {
        step().await;
        let mut written = self.written.lock();
        if self.breaks_after.is_some_and(|after| written.messages.len() >= after) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        written.messages.extend((!self.queue.is_empty()).then(|| self.queue.remove(0)));
        Ok(())
    }

    async fn close(&mut self, _: ConnectionEnd) {
        self.written.lock().is_closed = true;
    }
}

fn outbox(breaks_after: Option<usize>) -> (Rc<Outbox<SlowWriter>>, Arc<Mutex<Written>>) {
    let written = Arc::<Mutex<Written>>::default();
    let writer = SlowWriter { queue: Vec::new(), written: written.clone(), breaks_after };
    (Rc::new(Outbox::new(writer, Observed::default())), written)
}

/// Long enough that two of them fill the queue.
fn message(sender: u8, number: u8) -> Vec<u8> {
    let mut message = vec![b'.'; HIGH_WATER / 2 + 1];
    message[..2].copy_from_slice(&[sender, number]);
    message
}

#[test]
fn all_messages_are_written_in_the_order_of_their_sender() {
    explore(SEEDS, |schedule| {
        let (outbox, written) = outbox(None);
        let senders = Rc::new(Cell::new(2));
        for sender in 0..2 {
            let (outbox, senders) = (outbox.clone(), senders.clone());
            schedule.task("sender", async move {
                for number in 0..3 {
                    if let Some(ready) = outbox.ready() {
                        ready.await;
                    }
                    outbox.send(message(sender, number), false);
                    step().await;
                }
                senders.set(senders.get() - 1);
                if senders.get() == 0 {
                    outbox.finish();
                }
            });
        }
        let receiving = outbox.clone();
        schedule.task("receiver", async move {
            for _ in 0..3 {
                receiving.received();
                step().await;
            }
        });
        // A sender that gives up while it waits for room takes no other's.
        let giving_up = outbox.clone();
        schedule.dropped_task("waiter", async move {
            while let Some(ready) = giving_up.ready() {
                ready.await;
                step().await;
            }
        });
        schedule.task("writing task", async move { outbox.run().await.unwrap() });
        move || {
            let written = written.lock();
            for sender in 0..2 {
                let own = written.messages.iter().filter(|message| message[0] == sender);
                assert_eq!(own.map(|message| message[1]).collect::<Vec<_>>(), [0, 1, 2]);
            }
            assert!(written.messages.len() == 6 && written.is_closed);
        }
    });
}

#[test]
fn senders_do_not_wait_for_a_pipe_that_broke_or_was_shut() {
    explore(SEEDS, |schedule| {
        let breaks_after = usize::try_from(schedule.below(3)).ok().filter(|after| *after > 0);
        let (outbox, _) = outbox(breaks_after);
        for sender in 0..3 {
            let outbox = outbox.clone();
            schedule.task("sender", async move {
                for number in 0..4 {
                    if let Some(ready) = outbox.ready() {
                        ready.await;
                    }
                    outbox.send(message(sender, number), false);
                }
            });
        }
        let shutting = outbox.clone();
        schedule.task("shuts", async move {
            for _ in 0..8 {
                step().await;
            }
            shutting.shut();
            shutting.finish();
        });
        // Broken or shut: both are an end.
        schedule.task("writing task", async move { drop(outbox.run().await) });
        || ()
    });
}
