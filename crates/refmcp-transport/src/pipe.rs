//! What the driver needs of a pipe, and lines of text over any byte stream.

use std::future::Future;
use std::io;

use refmcp_proto::frame::{Line, LineDecoder, encode_line};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::driver::ConnectionEnd;

/// One message as it came, or the fact that it was too long to be kept.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// The bytes of a message.
    Message(&'a [u8]),
    /// A message over the limit, dropped.
    TooLong,
}

/// The end of a pipe that messages come out of.
pub trait FrameReader: Send {
    /// Waits for more input; `false` when there will be none. May be dropped at any time without losing anything.
    fn fill(&mut self) -> impl Future<Output = io::Result<bool>> + Send;

    /// The next whole message of what was read.
    fn next_frame(&mut self) -> Option<Frame<'_>>;

    /// What was read after the last whole message; empty where messages come whole.
    fn partial(&self) -> &[u8] {
        &[]
    }

    /// Bytes that are held of messages which are not complete.
    fn buffered(&self) -> usize {
        self.partial().len()
    }
}

/// The end of a pipe that messages go into.
pub trait FrameWriter: Send {
    /// Queues a message.
    fn push(&mut self, json: &[u8]);

    /// The bytes that are queued; never zero while the stream still keeps some back.
    fn pending(&self) -> usize;

    /// Writes some of what is queued. May be dropped at any time without losing or repeating anything.
    fn flush(&mut self) -> impl Future<Output = io::Result<()>> + Send;

    /// Says that nothing more follows, where the pipe has a way to say so.
    fn close(&mut self, _: ConnectionEnd) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }
}

/// Reads messages, and can look at the first without taking it.
#[derive(Debug)]
pub struct PeekedReader<R> {
    reader: R,
    /// The first message until it is taken, and whether that is due; empty where it was too long.
    first: Option<Vec<u8>>,
    is_taken: bool,
}

impl<R: FrameReader> PeekedReader<R> {
    /// Reads from another reader.
    pub fn new(reader: R) -> Self {
        Self { reader, first: None, is_taken: false }
    }

    /// The first message, empty where it was too long; `None` where the input ends before. Messages may be read only after
    /// that.
    ///
    /// # Errors
    /// The input cannot be read.
    pub async fn peek(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut is_open = true;
        loop {
            self.first = self.reader.next_frame().map(|frame| match frame {
                Frame::Message(bytes) => bytes.to_vec(),
                Frame::TooLong => Vec::new(),
            });
            if self.first.is_some() || !is_open {
                return Ok(self.first.clone());
            }
            // What comes before the end may be a message without a line break.
            is_open = self.reader.fill().await?;
        }
    }
}

impl<R: FrameReader> FrameReader for PeekedReader<R> {
    async fn fill(&mut self) -> io::Result<bool> {
        self.reader.fill().await
    }

    fn next_frame(&mut self) -> Option<Frame<'_>> {
        match self.first.as_deref().filter(|_| !std::mem::replace(&mut self.is_taken, true)) {
            Some([]) => Some(Frame::TooLong),
            Some(first) => Some(Frame::Message(first)),
            None => self.reader.next_frame(),
        }
    }

    fn partial(&self) -> &[u8] {
        self.reader.partial()
    }

    fn buffered(&self) -> usize {
        self.reader.buffered()
    }
}

/// Reads messages that stand on a line each.
#[derive(Debug)]
pub struct LineReader<R> {
    stream: R,
    decoder: LineDecoder,
    ended: bool,
}

impl<R> LineReader<R> {
    /// Lines of at most `max_message_size` bytes.
    pub fn new(stream: R, max_message_size: usize) -> Self {
        Self { stream, decoder: LineDecoder::new(max_message_size), ended: false }
    }
}

impl<R: AsyncRead + Unpin + Send> FrameReader for LineReader<R> {
    async fn fill(&mut self) -> io::Result<bool> {
        let count = self.stream.read(self.decoder.spare()).await?;
        self.decoder.filled(count);
        self.ended = count == 0;
        Ok(!self.ended)
    }

    fn next_frame(&mut self) -> Option<Frame<'_>> {
        let line = if self.ended { self.decoder.finish() } else { self.decoder.next_line() };
        Some(match line? {
            Line::Text(bytes) => Frame::Message(bytes),
            Line::TooLong => Frame::TooLong,
        })
    }

    fn partial(&self) -> &[u8] {
        self.decoder.partial()
    }
}

/// Writes messages, one on a line each; what is queued together is written together.
#[derive(Debug)]
pub struct LineWriter<W> {
    stream: W,
    queue: Vec<u8>,
    written: usize,
    /// Whether the stream may keep bytes back that it has taken.
    kept_back: bool,
}

/// A queue that has grown beyond this gives back the rest once it is empty.
const KEEP: usize = 256 << 10;

impl<W> LineWriter<W> {
    /// Writes to this stream.
    pub fn new(stream: W) -> Self {
        Self { stream, queue: Vec::new(), written: 0, kept_back: false }
    }
}

impl<W: AsyncWrite + Unpin + Send> FrameWriter for LineWriter<W> {
    fn push(&mut self, json: &[u8]) {
        encode_line(&mut self.queue, json);
    }

    fn pending(&self) -> usize {
        self.queue.len() - self.written + usize::from(self.kept_back)
    }

    async fn flush(&mut self) -> io::Result<()> {
        let rest = self.queue.get(self.written..).unwrap_or_default();
        if !rest.is_empty() {
            match self.stream.write(rest).await? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                count => self.written += count,
            }
            self.kept_back = true;
        }
        // What is written goes before it is the greater part, or a reader who always lags a little would make the
        // queue grow for ever.
        if self.written >= KEEP && self.written * 2 >= self.queue.len() {
            self.queue.drain(..self.written);
            self.written = 0;
        }
        if self.written == self.queue.len() {
            self.written = 0;
            if self.queue.capacity() > KEEP {
                self.queue = Vec::with_capacity(KEEP);
            }
            self.queue.clear();
            // Some streams keep bytes back until they are told that no more follow for now.
            self.stream.flush().await?;
            self.kept_back = false;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_survive_a_narrow_stream() {
        let (near, far) = tokio::io::duplex(7);
        let writing = tokio::spawn(async move {
            let mut writer = LineWriter::new(near);
            for n in 0..100 {
                writer.push(format!("{{\"n\":{n}}}").as_bytes());
            }
            while writer.pending() > 0 {
                writer.flush().await.unwrap();
            }
        });
        let mut reader = LineReader::new(far, 100);
        let mut seen = Vec::new();
        while reader.fill().await.unwrap() {
            while let Some(Frame::Message(bytes)) = reader.next_frame() {
                seen.push(String::from_utf8(bytes.to_vec()).unwrap());
            }
        }
        writing.await.unwrap();
        assert_eq!(seen.len(), 100);
        assert_eq!(seen[99], "{\"n\":99}");
    }

    #[tokio::test]
    async fn the_first_message_is_seen_before_it_is_taken() {
        for (input, first, all) in [
            (&b"{}\n[]\n"[..], Some(&b"{}"[..]), &["{}", "[]"][..]),
            (b"{}", Some(b"{}"), &["{}"]),
            (b"a line that is too long\n{}\n", Some(b""), &["too long", "{}"]),
            (b"", None, &[]),
        ] {
            let mut reader = PeekedReader::new(LineReader::new(input, 10));
            assert_eq!(reader.peek().await.unwrap().as_deref(), first);
            let mut seen = Vec::new();
            loop {
                while let Some(frame) = reader.next_frame() {
                    seen.push(match frame {
                        Frame::Message(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
                        Frame::TooLong => "too long".to_owned(),
                    });
                }
                if !reader.fill().await.unwrap() {
                    break;
                }
            }
            assert_eq!(seen, all);
        }
    }

    #[tokio::test]
    async fn bytes_that_a_stream_keeps_back_are_pending() {
        let (near, mut far) = tokio::io::duplex(100);
        let mut writer = LineWriter::new(tokio::io::BufWriter::with_capacity(1000, near));
        writer.push(&[b'x'; 500]);
        let flushing = tokio::time::timeout(std::time::Duration::from_millis(1), writer.flush());
        assert!(flushing.await.is_err(), "the far end has not read");
        assert!(writer.pending() > 0);
        let reading = tokio::spawn(async move {
            let mut read = Vec::new();
            far.read_to_end(&mut read).await.unwrap();
            read
        });
        while writer.pending() > 0 {
            writer.flush().await.unwrap();
        }
        drop(writer);
        assert_eq!(reading.await.unwrap().len(), 501);
    }

    #[tokio::test]
    async fn a_reader_who_always_lags_costs_no_more_than_the_lag() {
        let (near, mut far) = tokio::io::duplex(64 << 10);
        let mut writer = LineWriter::new(near);
        let mut taken = vec![0; 32 << 10];
        for _ in 0..32 {
            writer.push(&vec![b'x'; (32 << 10) - 1]);
        }
        for _ in 0..1000 {
            writer.push(&vec![b'x'; (32 << 10) - 1]);
            writer.flush().await.unwrap();
            far.read_exact(&mut taken).await.unwrap();
            assert!(writer.pending() > 0, "the reader lags");
        }
        assert!(writer.queue.capacity() < 4 << 20, "{} bytes", writer.queue.capacity());
    }

    #[tokio::test]
    async fn a_last_line_without_an_end_counts() {
        let mut reader = LineReader::new(&b"{}\n\n{\"a\":1}"[..], 100);
        let mut count = 0;
        loop {
            let more = reader.fill().await.unwrap();
            while reader.next_frame().is_some() {
                count += 1;
            }
            if !more {
                break;
            }
        }
        assert_eq!(count, 2);
    }
}
