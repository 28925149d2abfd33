//! Many connections, and one thread that waits for all of them.

use std::io::{ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use crate::answer::{self, Answer};

const PATIENCE: Duration = Duration::from_secs(60);

/// What a connection carries to us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carries {
    Answers,
    /// An answer whose end is not waited for: its head, and then events.
    Events,
    Frames,
}

struct Connection {
    stream: TcpStream,
    input: Vec<u8>,
    carries: Carries,
}

pub struct Swarm {
    poll: Poll,
    events: Events,
    connections: Vec<Connection>,
    buffer: Box<[u8]>,
}

impl Swarm {
    pub fn connect(port: u16, count: usize) -> Result<Self> {
        let mut swarm = Self {
            poll: Poll::new()?,
            events: Events::with_capacity(1024),
            connections: Vec::new(),
            buffer: vec![0; 64 << 10].into(),
        };
        swarm.grow(port, count)?;
        Ok(swarm)
    }

    /// Opens further connections.
    pub fn grow(&mut self, port: u16, count: usize) -> Result<()> {
        for _ in 0..count {
            let stream = std::net::TcpStream::connect(("127.0.0.1", port)).context("cannot connect")?;
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            let mut stream = TcpStream::from_std(stream);
            self.poll.registry().register(&mut stream, Token(self.connections.len()), Interest::READABLE)?;
            self.connections.push(Connection { stream, input: Vec::new(), carries: Carries::Answers });
        }
        Ok(())
    }

    pub fn len(&self) -> usize {
        self.connections.len()
    }

    pub fn is_empty(&self) -> bool {
        self.connections.is_empty()
    }

    pub fn carries(&mut self, index: usize, what: Carries) {
        self.connections[index].carries = what;
    }

    pub fn send(&mut self, index: usize, request: &[u8]) -> Result<()> {
        // Requests are short, and nothing is sent before the last one was answered: there is room.
        let written = self.connections[index].stream.write(request)?;
        ensure!(written == request.len(), "a request was not taken whole");
        Ok(())
    }

    /// Waits until something has come, and hands over every answer that is whole; what is left in `next` by then is
    /// sent on the same connection.
    pub fn turn(
        &mut self,
        mut take: impl FnMut(usize, &Answer<'_>, &mut Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        self.poll.poll(&mut self.events, Some(PATIENCE))?;
        ensure!(!self.events.is_empty(), "nothing has come for {PATIENCE:?}");
        let mut next = Vec::new();
        for event in &self.events {
            let index = event.token().0;
            let connection = &mut self.connections[index];
            connection.read(&mut self.buffer)?;
            let mut done = 0;
            while let Some((length, answer)) = connection.next(done)? {
                take(index, &answer, &mut next)?;
                done += length;
            }
            connection.input.drain(..done);
            if !next.is_empty() {
                let written = connection.stream.write(&next)?;
                ensure!(written == next.len(), "a request was not taken whole");
                next.clear();
            }
        }
        Ok(())
    }

    /// One request on each connection from `first` on; waits until all are answered.
    pub fn each(
        &mut self,
        first: usize,
        mut request: impl FnMut(usize) -> Vec<u8>,
        mut take: impl FnMut(usize, &Answer<'_>) -> Result<()>,
    ) -> Result<()> {
        for index in first..self.len() {
            self.send(index, &request(index))?;
        }
        let mut left = self.len() - first;
        let begin = Instant::now();
        while left > 0 {
            ensure!(begin.elapsed() < PATIENCE, "{left} requests were not answered");
            self.turn(|index, answer, _| {
                // What streams carry meanwhile is nothing of ours.
                if index >= first && answer.status != answer::EVENT {
                    left -= 1;
                    take(index, answer)?;
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}

impl Connection {
    fn read(&mut self, buffer: &mut [u8]) -> Result<()> {
        loop {
            match self.stream.read(buffer) {
                Ok(0) => bail!(
                    "the server has closed a connection after {:?}",
                    String::from_utf8_lossy(&self.input)
                ),
                Ok(length) => {
                    self.input.extend(&buffer[..length]);
                    // A read that was not filled has emptied the socket.
                    if length < buffer.len() {
                        return Ok(());
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The answer that begins at `from`, if it is there, and its length.
    fn next(&self, from: usize) -> Result<Option<(usize, Answer<'_>)>> {
        let input = &self.input[from..];
        match self.carries {
            _ if input.is_empty() => Ok(None),
            Carries::Answers => answer::read(input),
            Carries::Frames => answer::read_frame(input),
            Carries::Events => answer::read_event(input),
        }
    }
}
