//! Colours, where there is a terminal that wants them.

use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};

/// Whether to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Paint {
    on: bool,
}

impl Paint {
    /// No colours.
    pub(crate) const PLAIN: Self = Self { on: false };

    /// As a stream and the environment want it; `no_color` rules them out.
    pub(crate) fn for_stream(stream: &impl RawStream, no_color: bool) -> Self {
        Self { on: !no_color && AutoStream::choice(stream) != ColorChoice::Never }
    }

    /// Names and headings.
    pub(crate) fn strong(self, text: &str) -> String {
        self.with(Style::new().bold(), text)
    }

    /// What matters less.
    pub(crate) fn faint(self, text: &str) -> String {
        self.with(Style::new().dimmed(), text)
    }

    /// What went wrong.
    pub(crate) fn wrong(self, text: &str) -> String {
        self.with(AnsiColor::Red.on_default().bold(), text)
    }

    /// What comes in.
    pub(crate) fn added(self, text: &str) -> String {
        self.with(AnsiColor::Green.on_default(), text)
    }

    /// What to be careful with.
    pub(crate) fn careful(self, text: &str) -> String {
        self.with(AnsiColor::Yellow.on_default(), text)
    }

    /// Addresses and values.
    pub(crate) fn value(self, text: &str) -> String {
        self.with(AnsiColor::Cyan.on_default(), text)
    }

    fn with(self, style: Style, text: &str) -> String {
        if self.on { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    #[cfg(test)]
    pub(crate) const COLOURED: Self = Self { on: true };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_ended_and_can_be_left_out() {
        assert_eq!(Paint::PLAIN.wrong("x"), "x");
        let coloured = Paint::COLOURED.wrong("x");
        assert!(coloured.starts_with("\x1b[") && coloured.ends_with("\x1b[0m"), "{coloured:?}");
    }
}
