//! Running a script: what it is called with, and waiting for what it looks at.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use redis::{Cmd, cmd};
use refmcp_server::backplane::{Result, SessionId, StreamKey, StreamNumber, WriterEpoch};
use tokio::sync::futures::Notified;

use crate::RedisBackplane;
use crate::keys::name;
use crate::reply::Reply;
use crate::scripts::{Script, millis};

/// A script with what it is called with.
pub(crate) struct Invocation<'a> {
    backplane: &'a RedisBackplane,
    script: &'a Script,
    key: Option<String>,
    args: Vec<Bytes>,
}

impl RedisBackplane {
    pub(crate) fn invoke<'a>(&'a self, script: &'a Script) -> Invocation<'a> {
        Invocation { backplane: self, script, key: None, args: Vec::new() }
    }

    pub(crate) fn invoke_in<'a>(&'a self, script: &'a Script, session: &SessionId) -> Invocation<'a> {
        let key = format!("{}{{{}}}", self.prefix, name(session.reveal()));
        Invocation { key: Some(key), ..self.invoke(script) }
    }

    /// Waits for a hint, for at most as long as nothing must be looked at again: a session whose idle time this is ends when
    /// it is not looked at, and after the limit there is another outcome.
    pub(crate) async fn wait(&self, hint: Notified<'_>, idle: Option<u64>, limit: Option<u64>) {
        // Not all at the same time.
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let spread = COUNT.fetch_add(7, Ordering::Relaxed) % 32;
        let mut time = self.poll * 3 / 4 + self.poll * u32::try_from(spread).unwrap_or(0) / 64;
        if let Some(idle) = idle {
            time = time.min(Duration::from_millis(idle / 4).max(Duration::from_millis(1)));
        }
        if let Some(limit) = limit {
            time = time.min(Duration::from_millis(limit.saturating_add(1)));
        }
        tokio::select! {
            () = hint => {}
            () = tokio::time::sleep(time) => {}
        }
    }

    pub(crate) fn stream_hint(&self, stream: &StreamKey) -> String {
        format!("{}:{}", name(stream.session.reveal()), stream.number.0)
    }
}

impl Invocation<'_> {
    pub(crate) fn arg(mut self, arg: impl Into<Bytes>) -> Self {
        self.args.push(arg.into());
        self
    }

    pub(crate) fn text(self, text: &str) -> Self {
        self.arg(Bytes::copy_from_slice(text.as_bytes()))
    }

    pub(crate) fn number(self, number: u64) -> Self {
        self.arg(number.to_string())
    }

    pub(crate) fn stream(self, number: StreamNumber) -> Self {
        self.number(number.0)
    }

    pub(crate) fn writer(self, writer: WriterEpoch) -> Self {
        self.number(writer.0.into())
    }

    pub(crate) fn duration(self, duration: Duration) -> Self {
        self.number(millis(duration))
    }

    pub(crate) async fn run(mut self) -> Result<Reply> {
        let given = self.backplane.link.time().map(|time| time());
        if let Some((now, _held)) = &given {
            self.args.push(now.as_micros().to_string().into());
        }
        let build = |command: &'static str, script: &str| -> Cmd {
            let mut built = cmd(command);
            built.arg(script).arg(usize::from(self.key.is_some()));
            if let Some(key) = &self.key {
                built.arg(key);
            }
            self.args.iter().for_each(|arg| {
                built.arg(&arg[..]);
            });
            built
        };
        Reply::new(self.script.name, self.backplane.link.script(self.script, build).await?)
    }
}
