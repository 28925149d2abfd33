//! `refmcp relay`: a transparent recording proxy between a client and a server that are not ours.
//!
//! It speaks no protocol: without `--faults` bytes pass unchanged, and what either side does wrong reaches the other as it is.
//! `bridge` is the proxy that speaks MCP to both sides.
//!
//! | module | what it is |
//! |---|---|
//! | `stdio` | between the process that started this one and a server that is started here |
//! | `http`, `body` | between clients of a port and a server at a URL; their requests and responses |
//! | `faults` | what goes wrong on purpose on the way from the server to the client |
//! | `faulty_http` | the same over HTTP and WebSocket |
//! | `in_process` | in front of the reference server in this process, over stdio; over HTTP, `http` is |
//! | `taps` | finds the messages in bytes that pass: lines, bodies, server-sent events, WebSocket frames |

mod body;
mod faults;
mod faulty_http;
mod http;
mod in_process;
mod stdio;
mod taps;

use std::sync::Arc;

use anyhow::Result;
use refmcp_client::observer::Observer;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::runtime::Builder;
use url::Url;

use crate::args::{ExitReason, RecordOptions, RelayOptions};
use crate::record::Recording;
pub(crate) use faults::SharedFaults;
pub(crate) use http::in_front_of;
pub(crate) use in_process::serve_stdio;

/// Bytes that are read at once.
const CHUNK: usize = 64 << 10;

/// Passes bytes on until one side is gone or a signal ends it.
pub(crate) fn run(options: &RelayOptions, url: Option<&Url>) -> Result<ExitReason> {
    let observer = observer(&options.record)?;
    let faults = options.faults.as_deref().map(SharedFaults::read).transpose()?;
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let done = match url {
        None => runtime.block_on(stdio::run(&options.command, observer, faults)),
        Some(url) => runtime.block_on(http::run(url, options, observer, faults)),
    };
    // A thread that reads standard input cannot be ended otherwise.
    runtime.shutdown_background();
    done
}

/// Who sees what passes: a recording and an audit, where the options ask for them.
pub(crate) fn observer(options: &RecordOptions) -> Result<Arc<dyn Observer>> {
    let observer: Vec<Arc<dyn Observer>> = Recording::open(options, false)?.observer().into_iter().collect();
    Ok(Arc::new(observer))
}

/// Passes bytes on until the input ends, the output has no reader, or `until` comes while there is nothing to read.
async fn pass<U: Future<Output = ()>>(
    mut input: impl AsyncRead + Unpin,
    mut output: impl AsyncWrite + Unpin,
    mut seen: impl FnMut(&[u8]),
    until: impl Fn() -> U,
) {
    let mut buffer = vec![0; CHUNK];
    loop {
        let read = tokio::select! {
            biased;
            read = input.read(&mut buffer) => read,
            () = until() => break,
        };
        let bytes = match read {
            Ok(count @ 1..) => buffer.get(..count).unwrap_or_default(),
            Ok(0) => break,
            Err(error) => return tracing::debug!(%error, "a side is gone"),
        };
        seen(bytes);
        let written = async { output.write_all(bytes).await.and(output.flush().await) };
        if let Err(error) = written.await {
            return tracing::debug!(%error, "a side no longer reads");
        }
    }
    if let Err(error) = output.shutdown().await {
        tracing::debug!(%error, "a side was gone before the end");
    }
}
