//! Where results go: as text for people, as one JSON document, or nowhere because every message is printed anyway.

use std::io::{self, IsTerminal, Write};

use anyhow::Result;
use serde::Serialize;

use crate::args::{Output, Shared};
use crate::ui::render::View;

/// How results are shown.
#[derive(Debug, Clone)]
pub(crate) struct Printer {
    output: Output,
    view: View,
}

impl Printer {
    pub(crate) fn new(shared: &Shared) -> Self {
        Self { output: shared.output, view: View::for_stdout(shared.no_color) }
    }

    /// Shows a result.
    pub(crate) fn show(&self, result: &impl Serialize, text: impl FnOnce(&View) -> String) -> Result<()> {
        match self.output {
            Output::Text => write(text(&self.view).as_bytes()),
            Output::Json => {
                let mut document = serde_json::to_vec_pretty(result)?;
                document.push(b'\n');
                write(&document)
            }
            // Each message was printed when it passed.
            Output::Jsonl => Ok(()),
        }
    }

    /// Shows a result whose bytes may be wanted as they are, by a program that reads them.
    pub(crate) fn show_bytes(
        &self,
        result: &impl Serialize,
        bytes: Option<Vec<u8>>,
        text: impl FnOnce(&View) -> String,
    ) -> Result<()> {
        match bytes.filter(|_| self.output == Output::Text && !io::stdout().is_terminal()) {
            Some(bytes) => write(&bytes),
            None => self.show(result, text),
        }
    }

    pub(crate) fn output(&self) -> Output {
        self.output
    }

    pub(crate) fn view(&self) -> &View {
        &self.view
    }
}

/// Writes to standard output; a reader that has left wants no more.
pub(crate) fn write(bytes: &[u8]) -> Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(fault) if fault.kind() != io::ErrorKind::BrokenPipe => Err(fault.into()),
        _ => Ok(()),
    }
}
