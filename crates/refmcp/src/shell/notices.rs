//! Notices shown above the line that is being typed: changes, log messages, complaints of servers. What says
//! something never waits; one thread shows it, above the line where there is one.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use anyhow::{Context, Result};
use parking_lot::Mutex;
use rustyline::ExternalPrinter;
use tokio::sync::oneshot;

use crate::ui::output::print_aside;
use crate::ui::progress::Bars;
use crate::ui::redact::masked;

/// Texts that wait to be shown; more are counted and left out.
const MAX_WAITING: usize = 1024;

/// How long to wait for what was said to be shown.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(500);

/// Prints above a line that is being typed.
pub(super) type Above = Box<dyn ExternalPrinter + Send>;

/// Where to say something.
#[derive(Clone)]
pub(super) struct Notices {
    waiting: SyncSender<Notice>,
    left_out: Arc<AtomicU64>,
    /// Whether a line is being typed.
    typing: Arc<AtomicBool>,
    /// The editor's printer, where lines are edited.
    above: Arc<Mutex<Option<Above>>>,
}

enum Notice {
    Text(String),
    /// Everything before this has been shown.
    Shown(oneshot::Sender<()>),
}

impl Notices {
    /// Starts to show.
    pub(super) fn start(bars: Bars) -> Result<Self> {
        let (waiting, texts) = sync_channel(MAX_WAITING);
        let notices =
            Self { waiting, left_out: Arc::default(), typing: Arc::default(), above: Arc::default() };
        let (typing, left_out, above) =
            (notices.typing.clone(), notices.left_out.clone(), notices.above.clone());
        std::thread::Builder::new()
            .name("notices".to_owned())
            .spawn(move || show_all(&texts, &bars, &typing, &left_out, &above))
            .context("cannot start a thread")?;
        Ok(notices)
    }

    /// Uses the editor's printer while a line is typed.
    pub(super) fn show_by(&self, above: Above) {
        *self.above.lock() = Some(above);
    }

    /// What the editor sets while a line is typed.
    pub(super) fn typing(&self) -> Arc<AtomicBool> {
        self.typing.clone()
    }

    /// Shows a text without the secrets of targets; harmless already, with a line break at its end.
    pub(super) fn say(&self, text: String) {
        let masked = match masked(&text) {
            Cow::Owned(masked) => Some(masked),
            Cow::Borrowed(_) => None,
        };
        let text = masked.unwrap_or(text);
        if self.waiting.try_send(Notice::Text(text)).is_err() {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn is_typing(&self) -> bool {
        self.typing.load(Ordering::SeqCst)
    }

    /// Waits until everything that was said is shown, for a while.
    pub(super) async fn shown(&self) {
        let (shown, all_shown) = oneshot::channel();
        if self.waiting.try_send(Notice::Shown(shown)).is_ok() {
            // It is shown later otherwise.
            let _ = tokio::time::timeout(FLUSH_TIMEOUT, all_shown).await;
        }
    }
}

fn show_all(
    texts: &Receiver<Notice>,
    bars: &Bars,
    typing: &AtomicBool,
    left_out: &AtomicU64,
    above: &Mutex<Option<Above>>,
) {
    let show = |text: String| {
        let mut above = above.lock();
        match above.as_mut().filter(|_| typing.load(Ordering::SeqCst)) {
            // The bars are not held meanwhile: this may wait for the next line to be typed, and calls must not.
            Some(above) => {
                // An editor that has left shows nothing, and the log is shown here as well.
                let _ = above.print(text);
            }
            None => bars.aside(|| print_aside(&text)),
        }
    };
    for aside in texts {
        match aside {
            Notice::Text(text) => show(text),
            // The waiter may have given up.
            Notice::Shown(shown) => drop(shown.send(())),
        }
        match left_out.swap(0, Ordering::Relaxed) {
            0 => {}
            count => show(format!("({count} lines came too fast and are left out)\n")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Prints when it is let, and hands over what it prints.
    struct Slow {
        go: mpsc::Receiver<()>,
        printed: mpsc::Sender<String>,
    }

    impl ExternalPrinter for Slow {
        fn print(&mut self, text: String) -> rustyline::Result<()> {
            // A test that is over lets everything go.
            let _ = self.go.recv();
            let _ = self.printed.send(text);
            Ok(())
        }
    }

    #[test]
    fn saying_something_never_waits() {
        let notices = Notices::start(Bars::hidden()).unwrap();
        let ((let_go, go), (printed, shown)) = (mpsc::channel(), mpsc::channel());
        notices.show_by(Box::new(Slow { go, printed }));
        notices.typing().store(true, Ordering::SeqCst);
        // One may be on its way to be printed; the others beyond the limit are left out.
        for number in 0..MAX_WAITING + 10 {
            notices.say(format!("{number}\n"));
        }
        drop(let_go);
        let patience = Duration::from_secs(20);
        let mut texts = Vec::new();
        while !texts.last().is_some_and(|text: &String| text.contains("left out")) {
            texts.push(shown.recv_timeout(patience).unwrap());
        }
        let left_out = texts.last().unwrap().clone();
        assert!(left_out.starts_with("(9 ") || left_out.starts_with("(10 "), "{left_out}");
        assert_eq!(texts[0], "0\n");
    }

    #[tokio::test]
    async fn everything_said_before_is_shown() {
        let notices = Notices::start(Bars::hidden()).unwrap();
        let ((let_go, go), (printed, shown)) = (mpsc::channel(), mpsc::channel());
        notices.show_by(Box::new(Slow { go, printed }));
        notices.typing().store(true, Ordering::SeqCst);
        drop(let_go);
        for number in 0..10 {
            notices.say(number.to_string());
        }
        notices.shown().await;
        assert_eq!(shown.try_iter().collect::<String>(), "0123456789");
    }
}
