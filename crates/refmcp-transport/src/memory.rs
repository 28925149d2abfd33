//! Two ends in one process, so that servers and clients can be tried without a second one.

use tokio::io::{DuplexStream, ReadHalf, WriteHalf, duplex, split};

use crate::pipe::{LineReader, LineWriter};

/// One end of a pair.
pub type MemoryPipe = (LineReader<ReadHalf<DuplexStream>>, LineWriter<WriteHalf<DuplexStream>>);

/// Two connected ends; what one writes, the other reads.
pub fn pair(max_message_size: usize) -> (MemoryPipe, MemoryPipe) {
    let (near, far) = duplex(64 << 10);
    (end(near, max_message_size), end(far, max_message_size))
}

fn end(stream: DuplexStream, max_message_size: usize) -> MemoryPipe {
    let (read, write) = split(stream);
    (LineReader::new(read, max_message_size), LineWriter::new(write))
}
