//! How far calls have come, on stderr; nothing of it is written when that is no terminal.

use std::sync::Arc;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::Number;

use super::output::print_aside;
use super::redact::masked;
use super::text::{one_line, truncate};

/// How finely a bar is divided; a server's numbers may be fractions.
const STEPS: u64 = 1000;

/// Columns of what a server says about its progress.
const MESSAGE: usize = 60;

/// How often a bar without a total moves.
const TICK: Duration = Duration::from_millis(120);

/// Shows a text in its own way.
type Say = dyn Fn(&str) + Send + Sync;

/// The bars of all running calls.
#[derive(Clone)]
pub(crate) struct Bars {
    all: MultiProgress,
    /// Where text goes that comes while calls run, if not to stderr.
    elsewhere: Option<Arc<Say>>,
    /// The server that they are of, where there are several.
    server: Option<Arc<str>>,
}

impl Bars {
    /// Bars on stderr, where it is a terminal.
    pub(crate) fn on_stderr() -> Self {
        Self::drawn_to(ProgressDrawTarget::stderr())
    }

    /// Bars that are not shown.
    pub(crate) fn hidden() -> Self {
        Self::drawn_to(ProgressDrawTarget::hidden())
    }

    fn drawn_to(target: ProgressDrawTarget) -> Self {
        Self { all: MultiProgress::with_draw_target(target), elsewhere: None, server: None }
    }

    /// A call, which gets a bar when it first says how far it has come.
    pub(crate) fn call(&self, label: &str) -> Bar {
        let label = one_line(label);
        Bar { all: self.all.clone(), label: truncate(&label, MESSAGE).into_owned(), bar: None }
    }

    /// Does something that writes to the terminal, with the bars out of the way.
    pub(crate) fn aside<T>(&self, write: impl FnOnce() -> T) -> T {
        self.all.suspend(write)
    }

    /// Takes the bars off the terminal until what is returned goes, for a question there. Unlike [`Self::aside`], this does
    /// not hold up calls that report progress meanwhile.
    pub(crate) fn hide(&self) -> Option<Hidden> {
        if self.all.is_hidden() {
            return None;
        }
        if let Err(error) = self.all.clear() {
            tracing::debug!(%error, "a bar stays where it is");
        }
        self.all.set_draw_target(ProgressDrawTarget::hidden());
        Some(Hidden { all: self.all.clone() })
    }

    /// The same bars; text that comes while calls run goes to this function.
    pub(crate) fn saying(&self, say: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { elsewhere: Some(Arc::new(say)), ..self.clone() }
    }

    /// The same for one of several servers, whose name comes before the text.
    pub(crate) fn of_server(&self, name: &str, say: impl Fn(String) + Send + Sync + 'static) -> Self {
        let label = format!("[{name}] ");
        Self { server: Some(name.into()), ..self.saying(move |text| say(format!("{label}{text}"))) }
    }

    /// What the server is called in messages.
    pub(crate) fn server(&self) -> &str {
        self.server.as_deref().unwrap_or("the server")
    }

    /// Shows a text that comes while calls run, without the secrets of targets: to stderr, with the bars out of the way.
    pub(crate) fn say(&self, text: &str) {
        let text = &*masked(text);
        match &self.elsewhere {
            Some(say) => say(text),
            None => self.aside(|| print_aside(text)),
        }
    }
}

/// Bars that are not shown for now.
#[must_use]
pub(crate) struct Hidden {
    all: MultiProgress,
}

impl Drop for Hidden {
    fn drop(&mut self) {
        self.all.set_draw_target(ProgressDrawTarget::stderr());
        // They are drawn anew after this.
        self.all.suspend(|| ());
    }
}

/// The bar of one call; it goes with it.
pub(crate) struct Bar {
    all: MultiProgress,
    label: String,
    bar: Option<ProgressBar>,
}

impl Bar {
    /// Shows what the call is doing.
    pub(crate) fn say(&mut self, message: &str) {
        let said = one_line(&masked(message)).into_owned();
        self.shown().set_message(truncate(&said, MESSAGE).into_owned());
    }

    fn shown(&mut self) -> &ProgressBar {
        self.bar.get_or_insert_with(|| {
            let bar = self.all.add(ProgressBar::no_length());
            bar.set_style(style("{prefix} {spinner} {msg}"));
            bar.set_prefix(self.label.clone());
            bar.enable_steady_tick(TICK);
            bar
        })
    }

    /// Shows how far the call has come.
    pub(crate) fn update(&mut self, progress: &Number, total: Option<&Number>, message: Option<&str>) {
        let bar = self.shown();
        let said = message.map(masked).unwrap_or_default();
        let said = one_line(&said);
        let said = truncate(&said, MESSAGE);
        match share(progress, total) {
            Some(done) => {
                if bar.length().is_none() {
                    bar.disable_steady_tick();
                    bar.set_style(style("{prefix} [{bar:30}] {percent}% {msg}"));
                    bar.set_length(STEPS);
                }
                bar.set_position(done);
                bar.set_message(said.into_owned());
            }
            None => bar.set_message(format!("{progress} {said}").trim_end().to_owned()),
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// How much of the whole is done, in steps; `None` when the whole is not known or makes no sense.
fn share(progress: &Number, total: Option<&Number>) -> Option<u64> {
    let total = total?.as_f64().filter(|total| *total > 0.0)?;
    let share = (progress.as_f64()? / total).clamp(0.0, 1.0);
    // Between 0 and the number of steps, so nothing is lost.
    Some((share * STEPS as f64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Number {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn shares_are_of_a_whole_that_makes_sense() {
        for (progress, total, expected) in [
            ("1", Some("4"), Some(250)),
            ("0.5", Some("1"), Some(500)),
            ("9", Some("4"), Some(1000)),
            ("-1", Some("4"), Some(0)),
            ("1", Some("0"), None),
            ("1", Some("-4"), None),
            ("1e308", Some("1e-308"), Some(1000)),
            ("1", None, None),
        ] {
            let total = total.map(number);
            assert_eq!(share(&number(progress), total.as_ref()), expected, "{progress} {total:?}");
        }
    }

    #[test]
    fn a_bar_follows_what_is_said() {
        let bars = Bars::hidden();
        let mut bar = bars.call("long\x1b_task");
        assert!(bar.bar.is_none(), "nothing was said yet");
        bar.update(&number("3"), None, Some("thinking\x1b[2J"));
        let shown = bar.bar.clone().unwrap();
        assert_eq!((shown.message().as_str(), shown.prefix().as_str()), ("3 thinking␛[2J", "long␛_task"));
        bar.update(&number("3"), Some(&number("6")), None);
        assert_eq!((shown.position(), shown.length()), (500, Some(STEPS)));
        drop(bar);
        assert!(shown.is_finished());
        assert_eq!(bars.aside(|| 7), 7);
    }
}
