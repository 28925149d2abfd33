//! Writers, readers and the log of one stream in thousands of orders.

use std::cell::RefCell;
use std::rc::Rc;

use refmcp_server::backplane::ReadOutcome;
use refmcp_testkit::schedule::{Schedule, explore, step};

use super::*;

/// Schedules of each scenario.
const SEEDS: std::ops::Range<u64> = 0..2_000;

/// Notifications before the answer.
const NOTIFICATIONS: usize = 4;

type Received = Rc<RefCell<Vec<String>>>;

fn expected() -> Vec<String> {
    (0..NOTIFICATIONS).map(|number| number.to_string()).chain(["answer".to_owned()]).collect()
}

/// Pushes notifications and the answer, with other tasks between them.
fn write(schedule: &mut Schedule, stream: &Arc<ResponseStream>) {
    let stream = stream.clone();
    schedule.task("writer", async move {
        for number in 0..NOTIFICATIONS {
            stream.push(notification(&number.to_string()));
            step().await;
        }
        stream.push(answer("answer"));
    });
}

/// Reads from the stream itself until the end, or until another reader has it.
async fn read(stream: Arc<ResponseStream>, received: Received) {
    let reader = stream.attach();
    loop {
        match reader.next().await {
            Next::Message(message) => {
                received.borrow_mut().push(String::from_utf8(message.json.to_vec()).unwrap());
            }
            Next::End | Next::Lost => return,
            Next::Wait => panic!("waiting is over"),
        }
        step().await;
    }
}

#[test]
fn readers_that_take_over_get_every_message_once() {
    explore(SEEDS, |schedule| {
        let stream = stream_of(ExchangeId(1), 1_000);
        let received = Received::default();
        write(schedule, &stream);
        for _ in 0..2 {
            schedule.task("reader", read(stream.clone(), received.clone()));
        }
        // A reader whose connection closes takes messages with it, unless it is dropped while it waits for the first.
        let waiting = stream.clone();
        schedule.dropped_task("dropped waiter", async move { drop(waiting.first_response().await) });
        move || {
            let mut received = received.take();
            // `first_response` takes the answer where nothing else is pending.
            if !received.contains(&"answer".to_owned()) {
                received.push("answer".to_owned());
            }
            assert_eq!(received, expected());
        }
    });
}

#[test]
fn waiters_hear_of_the_end_and_of_detaching() {
    explore(SEEDS, |schedule| {
        let stream = stream_of(ExchangeId(1), 1_000);
        let (first, numbered) = (stream.clone(), stream.clone());
        schedule.task("first response", async move { assert!(first.first_response().await.is_none()) });
        schedule.task("log number", async move { assert_eq!(numbered.log_number().await, None) });
        schedule.task("reader", read(stream.clone(), Received::default()));
        let detaches = schedule.below(2) == 0;
        let ending = stream.clone();
        schedule.task("end", async move {
            if detaches {
                ending.detach_reader();
                step().await;
            }
            ending.end();
        });
        move || assert!(stream.is_over())
    });
}

/// A log whose stream is open, and its key.
async fn open_log() -> (SessionLog, StreamNumber) {
    let backplane: Arc<dyn Backplane> = Arc::new(MemoryBackplane::default());
    let session = SessionId::new("s");
    backplane.create_session(&session, NewSession::default(), Duration::from_secs(900)).await.unwrap();
    let opened = backplane.open_stream(&session, Some(RequestId::from(1)), WriterEpoch(0)).await.unwrap();
    let OpenStreamOutcome::Opened(number) = opened else { panic!("{opened:?}") };
    let (writer, driver) = (WriterEpoch(0), WeakSessionDriver::default());
    (SessionLog { backplane, session, writer, driver }, number)
}

/// Reads from the log, over as many readers as it takes, since each may be detached.
async fn read_log(stream: Arc<ResponseStream>, log: SessionLog, received: Received) {
    let number = stream.log_number().await.unwrap();
    let key = StreamKey::new(log.session, number);
    let mut after = 0;
    loop {
        let begun = StreamReader::begin(log.backplane.clone(), key.clone(), ReadFrom::After(after)).await;
        let mut reader = begun.unwrap().unwrap();
        loop {
            match reader.next().await.unwrap() {
                ReadOutcome::Events(events) => {
                    for event in events {
                        assert_eq!(event.seq, after + 1);
                        after = event.seq;
                        received.borrow_mut().push(String::from_utf8(event.bytes.to_vec()).unwrap());
                        if event.kind == backplane::StreamEventKind::Final {
                            return;
                        }
                    }
                }
                ReadOutcome::Detached => break,
                other => panic!("{other:?}"),
            }
            step().await;
        }
    }
}

#[test]
fn the_log_gets_every_message_once_and_in_order() {
    explore(SEEDS, |schedule| {
        let stream = stream_of(ExchangeId(1), 1_000);
        let received = Received::default();
        write(schedule, &stream);
        let (attaching, reading, detaching) = (stream.clone(), stream.clone(), stream.clone());
        let read = received.clone();
        let (log_tx, log_rx) = tokio::sync::oneshot::channel();
        schedule.task("log", async move {
            let (log, number) = open_log().await;
            step().await;
            attaching.attach_log(log.clone(), number, 0);
            assert!(log_tx.send(log).is_ok());
        });
        schedule.task("reader", async move {
            let log = log_rx.await.unwrap();
            read_log(reading, log, read).await;
        });
        schedule.task("detaches", async move {
            step().await;
            detaching.detach_reader();
        });
        move || {
            assert_eq!(received.take(), expected());
            assert!(stream.is_over());
        }
    });
}

#[test]
fn a_message_waits_for_its_gate_and_the_others_for_it() {
    explore(SEEDS, |schedule| {
        let stream = stream_of(ExchangeId(1), 1_000);
        let received = Received::default();
        let (closed, gate) = Gate::new();
        let fails = schedule.below(2) == 0;
        let is_open = Rc::new(std::cell::Cell::new(false));
        let (opened, read, reading, writing) =
            (is_open.clone(), received.clone(), stream.clone(), stream.clone());
        schedule.task("gate", async move {
            step().await;
            opened.set(true);
            if fails {
                closed.send_replace(true);
            }
        });
        schedule.task("all", async move {
            let (log, number) = open_log().await;
            writing.attach_log(log.clone(), number, 0);
            let mut request = notification("request");
            (request.kind, request.gate) = (MessageKind::Request, Some(gate));
            writing.push(request);
            step().await;
            writing.push(answer("answer"));
            read_log(reading, log, read).await;
            assert!(is_open.get(), "a message has passed its gate");
        });
        move || {
            let passed = if fails { vec!["answer"] } else { vec!["request", "answer"] };
            assert_eq!(received.take(), passed);
        }
    });
}
