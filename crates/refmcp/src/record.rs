//! `--record FILE`, `--output jsonl` and `--audit`: what passes, as a recording, and judged by the rules of the specification.
//! Messages are recorded as they are; secrets in HTTP heads are masked.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use parking_lot::Mutex;
use refmcp_audit::recording::{Event, EventKind, EventSink, Masks, Recorder};
use refmcp_check::EventListener;
use refmcp_client::redact;
use refmcp_proto::rule::Rule;
use refmcp_transport::observer::{ConnectionId, Observer};

use crate::args::RecordOptions;
use crate::audit::LiveAudit;
use crate::store::append_private;
use crate::ui::output::print_json;
use crate::ui::redact::masked;

/// What is masked in heads and in input that is no message.
pub(crate) fn masks() -> Masks {
    Masks {
        // The user may have given one of those that may be shown, with a secret in it.
        header: |name, value| masked(redact::header(name, value)).into_owned(),
        target: redact::target,
        // The body of a refusal may repeat a secret of the request.
        text: |text| masked(text).into_owned(),
    }
}

/// Where events go: a file, standard output, an audit.
pub(crate) struct Recording {
    file: Option<Mutex<File>>,
    stdout: bool,
    audit: Option<LiveAudit>,
    /// What the numbers of this process' connections begin behind.
    base: u64,
}

impl Recording {
    /// Opens what the options name; messages go to standard output too where that is wanted.
    pub(crate) fn open(options: &RecordOptions, stdout: bool) -> Result<Self> {
        let open = |path: &Path| {
            append_private(path).with_context(|| format!("cannot write the recording to {}", path.display()))
        };
        let file = options.record.as_deref().map(open).transpose()?;
        let base = file.as_ref().map_or(0, first_number);
        let audit = options.audit.then(|| options.live_audit.clone());
        Ok(Self { file: file.map(Mutex::new), stdout, audit, base })
    }

    /// The observer that writes the events; none where they go nowhere.
    pub(crate) fn observer(self) -> Option<Arc<dyn Observer>> {
        self.goes_somewhere().then(|| Arc::new(Recorder::with_sink(masks(), self)) as _)
    }

    /// What writes events that were not seen by an observer; none where they go nowhere.
    pub(crate) fn listener(self) -> Option<EventListener> {
        self.goes_somewhere().then(|| {
            let masks = masks();
            Arc::new(move |event: &Event| {
                self.event(Event { kind: masks.masked(event.kind.clone()), ..event.clone() });
            }) as _
        })
    }

    fn goes_somewhere(&self) -> bool {
        self.file.is_some() || self.stdout || self.audit.is_some()
    }
}

impl EventSink for Recording {
    fn event(&self, mut event: Event) {
        if let Some(audit) = &self.audit {
            audit.observe(&event);
        }
        let shown =
            self.stdout && matches!(event.kind, EventKind::Message { .. } | EventKind::Invalid { .. });
        if self.file.is_none() && !shown {
            return;
        }
        event.connection += self.base;
        let line = event.to_line();
        if let Some(file) = &self.file
            && let Err(error) = file.lock().write_all(line.as_bytes())
        {
            tracing::warn!("the recording is incomplete: {error}");
        }
        if shown && let Err(error) = print_json(&line) {
            tracing::warn!("the output is incomplete: {error}");
        }
    }

    fn has_told(&self, connection: ConnectionId, rule: &'static Rule) -> bool {
        self.audit.as_ref().is_some_and(|audit| audit.has_told(connection, rule))
    }
}

/// Behind which number the connections of this process begin. Several processes may write to one file at the same time: each
/// but the one that has locked it counts from a number of its own, so that their connections are not taken for one.
fn first_number(file: &File) -> u64 {
    // Elsewhere than on Unix a lock would keep the others from writing.
    let is_shared = match cfg!(unix) {
        true => file.try_lock().is_err(),
        false => file.metadata().is_ok_and(|it| it.len() > 0),
    };
    if is_shared { u64::from(std::process::id()) << 20 } else { 0 }
}
