//! A terminal for tests: the answers are written down before, and what is shown is kept.

use std::io::{self, Cursor, Write};
use std::sync::{Arc, Mutex};

use super::Terminal;
use crate::ui::style::Paint;

/// What a scripted terminal has shown.
#[derive(Debug, Clone, Default)]
pub(crate) struct Screen(Arc<Mutex<Vec<u8>>>);

impl Screen {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A terminal at which this is typed.
pub(crate) fn scripted(typed: impl Into<Vec<u8>>) -> (Terminal, Screen) {
    let screen = Screen::default();
    (Terminal::new(Cursor::new(typed.into()), screen.clone(), Paint::PLAIN), screen)
}
