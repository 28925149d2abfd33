//! Explores schedules: runs a few tasks in thousands of orders, each from a seed, and finds those that never wake.
//!
//! A task is polled when it was woken, now and then without that, and at most once between two choices of which is next.
//! Tasks that the code under test spawns run on tokio's executor, at moments that are chosen too. Between two points at
//! which a task waits nothing else runs: what is found are wrong orders, lost wake-ups and what a dropped future leaves
//! behind, and not races between two processors.
//!
//! ```
//! use refmcp_testkit::schedule::{Schedule, explore, step};
//! use std::{cell::Cell, rc::Rc};
//!
//! explore(0..100, |schedule: &mut Schedule| {
//!     let sum = Rc::new(Cell::new(0));
//!     for number in 1..=3 {
//!         let sum = sum.clone();
//!         schedule.task("adds", async move {
//!             step().await;
//!             sum.set(sum.get() + number);
//!         });
//!     }
//!     move || assert_eq!(sum.get(), 6)
//! });
//! ```

use std::future::{Future, poll_fn};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use tokio::task::yield_now;

use crate::random::Random;

/// Turns of tokio's executor in which a spawned task may wake one of ours.
const PATIENCE: u32 = 30;

/// Polls of one schedule; more of them do not come to an end.
const MAX_POLLS: u32 = 100_000;

/// Runs a scenario under the schedule of each seed. The scenario adds its tasks, and gives what is checked once all have
/// ended.
///
/// # Panics
/// When a check fails, or when tasks wait that nothing will wake. The seed is printed.
pub fn explore<C: FnOnce()>(seeds: Range<u64>, scenario: impl Fn(&mut Schedule) -> C) {
    for seed in seeds {
        let run = || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
            let runtime = runtime.expect("a runtime without IO needs nothing of the system");
            runtime.block_on(async {
                let mut schedule = Schedule { random: Random::new(seed), tasks: Vec::new() };
                let check = scenario(&mut schedule);
                schedule.run().await;
                check();
            });
        };
        if let Err(panicked) = catch_unwind(AssertUnwindSafe(run)) {
            eprintln!("the schedule of seed {seed} fails");
            resume_unwind(panicked);
        }
    }
}

/// The tasks of one schedule.
pub struct Schedule {
    random: Random,
    tasks: Vec<Task>,
}

struct Task {
    name: &'static str,
    work: Pin<Box<dyn Future<Output = ()>>>,
    woken: Arc<Woken>,
    /// Dropped after so many polls, if it has not ended.
    dropped_after: Option<u64>,
}

struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Schedule {
    /// Adds a task that must end.
    pub fn task(&mut self, name: &'static str, work: impl Future<Output = ()> + 'static) {
        self.add(name, Box::pin(work), None);
    }

    /// Adds a task that is dropped at some point, or ends before.
    pub fn dropped_task(&mut self, name: &'static str, work: impl Future<Output = ()> + 'static) {
        let after = self.random.below(6);
        self.add(name, Box::pin(work), Some(after));
    }

    /// A number below `end`, for what the scenario itself chooses.
    pub fn below(&mut self, end: u64) -> u64 {
        self.random.below(end)
    }

    fn add(
        &mut self,
        name: &'static str,
        work: Pin<Box<dyn Future<Output = ()>>>,
        dropped_after: Option<u64>,
    ) {
        let woken = Arc::new(Woken(AtomicBool::new(true)));
        self.tasks.push(Task { name, work, woken, dropped_after });
    }

    async fn run(&mut self) {
        let (mut idle, mut polls) = (0, 0);
        while !self.tasks.is_empty() {
            if self.random.one_in(3) {
                yield_now().await;
            }
            let is_spurious = self.random.one_in(10);
            let index = usize::try_from(self.random.below(self.tasks.len() as u64)).unwrap_or(0);
            let is_woken = |task: &Task| task.woken.0.load(Ordering::Relaxed);
            let index = match is_spurious {
                true => Some(index),
                false => {
                    (index..self.tasks.len()).chain(0..index).find(|index| is_woken(&self.tasks[*index]))
                }
            };
            let Some(index) = index else {
                idle += 1;
                assert!(idle < PATIENCE, "nothing wakes {:?}", self.names());
                yield_now().await;
                continue;
            };
            if !is_spurious {
                idle = 0;
            }
            polls += 1;
            assert!(polls < MAX_POLLS, "{:?} do not come to an end", self.names());
            self.poll(index);
        }
    }

    fn poll(&mut self, index: usize) {
        let task = &mut self.tasks[index];
        if task.dropped_after == Some(0) {
            drop(self.tasks.swap_remove(index));
            return;
        }
        task.dropped_after = task.dropped_after.map(|after| after - 1);
        task.woken.0.store(false, Ordering::Relaxed);
        let waker = Waker::from(task.woken.clone());
        if task.work.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
            drop(self.tasks.swap_remove(index));
        }
    }

    fn names(&self) -> Vec<&'static str> {
        self.tasks.iter().map(|task| task.name).collect()
    }
}

impl std::fmt::Debug for Schedule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Schedule").field("tasks", &self.names()).finish_non_exhaustive()
    }
}

/// A point at which another task may be next.
pub async fn step() {
    let mut waited = false;
    poll_fn(|context| {
        if std::mem::replace(&mut waited, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::collections::BTreeSet;
    use std::rc::Rc;

    use tokio::sync::Notify;

    use super::*;

    #[test]
    fn all_orders_are_tried() {
        let orders = Rc::new(RefCell::new(BTreeSet::new()));
        explore(0..300, |schedule| {
            let order = Rc::new(RefCell::new(Vec::new()));
            for name in ["a", "b", "c", "d"] {
                let order = order.clone();
                schedule.task(name, async move { order.borrow_mut().push(name) });
            }
            let orders = orders.clone();
            move || {
                orders.borrow_mut().insert(order.take());
            }
        });
        assert_eq!(orders.borrow().len(), 24);
    }

    /// Looks at the value, and only then begins to wait: what changes between the two is not noticed.
    fn waits_too_late(schedule: &mut Schedule) -> impl FnOnce() + use<> {
        let (is_set, changed) = (Rc::new(Cell::new(false)), Rc::new(Notify::new()));
        let (setting, notified) = (is_set.clone(), changed.clone());
        schedule.task("waits", async move {
            while !is_set.get() {
                step().await;
                changed.notified().await;
            }
        });
        schedule.task("sets", async move {
            setting.set(true);
            notified.notify_waiters();
        });
        || ()
    }

    #[test]
    #[should_panic(expected = "nothing wakes [\"waits\"]")]
    fn a_lost_wake_up_is_found() {
        explore(0..100, waits_too_late);
    }

    #[test]
    fn spawned_tasks_run_too() {
        explore(0..50, |schedule| {
            let (sender, receiver) = tokio::sync::oneshot::channel();
            schedule.task("waits", async move { assert_eq!(receiver.await, Ok(7)) });
            tokio::spawn(async move { sender.send(7) });
            || ()
        });
    }
}
