//! Replies of scripts: a word for what came of it, then what belongs to it.

use bytes::Bytes;
use redis::Value;
use refmcp_server::backplane::{
    Event, SessionRecord, StreamEventKind, StreamNumber, TaskRecord, Unavailable,
};

/// Bytes before each event of the GET stream: the key that it was posted with.
const POST_KEY: usize = 16;

/// A reply that is being read.
#[derive(Debug)]
pub(crate) struct Reply {
    script: &'static str,
    outcome: String,
    values: std::vec::IntoIter<Value>,
}

/// A reply that no script of ours gives.
#[derive(Debug, thiserror::Error)]
#[error("the script {script} gave an unexpected reply after \"{outcome}\"")]
struct Unexpected {
    script: &'static str,
    outcome: String,
}

impl Reply {
    pub(crate) fn new(script: &'static str, value: Value) -> Result<Self, Unavailable> {
        let Value::Array(values) = value else {
            return Err(Unavailable::new(Unexpected { script, outcome: String::new() }));
        };
        let mut reply = Self { script, outcome: String::new(), values: values.into_iter() };
        reply.outcome = reply.text()?;
        Ok(reply)
    }

    /// What came of it.
    pub(crate) fn outcome(&self) -> &str {
        &self.outcome
    }

    /// The error for an outcome that is not known.
    pub(crate) fn unexpected(&self) -> Unavailable {
        Unavailable::new(Unexpected { script: self.script, outcome: self.outcome.clone() })
    }

    /// The next value, `None` where it is missing.
    pub(crate) fn optional_bytes(&mut self) -> Result<Option<Bytes>, Unavailable> {
        match self.values.next() {
            Some(Value::BulkString(bytes)) => Ok(Some(bytes.into())),
            Some(Value::SimpleString(text)) => Ok(Some(text.into())),
            Some(Value::Int(number)) => Ok(Some(number.to_string().into())),
            Some(Value::Double(number)) => Ok(Some(format!("{number:.0}").into())),
            Some(Value::Nil) | None => Ok(None),
            Some(_) => Err(self.unexpected()),
        }
    }

    pub(crate) fn bytes(&mut self) -> Result<Bytes, Unavailable> {
        self.optional_bytes()?.ok_or_else(|| self.unexpected())
    }

    pub(crate) fn text(&mut self) -> Result<String, Unavailable> {
        String::from_utf8(self.bytes()?.into()).map_err(|_| self.unexpected())
    }

    pub(crate) fn optional_number(&mut self) -> Result<Option<u64>, Unavailable> {
        let Some(bytes) = self.optional_bytes()? else { return Ok(None) };
        let number = std::str::from_utf8(&bytes).ok().and_then(|text| text.parse().ok());
        number.map(Some).ok_or_else(|| self.unexpected())
    }

    pub(crate) fn number(&mut self) -> Result<u64, Unavailable> {
        self.optional_number()?.ok_or_else(|| self.unexpected())
    }

    /// The next value as a list.
    pub(crate) fn list(&mut self) -> Result<Self, Unavailable> {
        match self.values.next() {
            Some(Value::Array(values)) => {
                Ok(Self { script: self.script, outcome: self.outcome.clone(), values: values.into_iter() })
            }
            _ => Err(self.unexpected()),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.values.len() == 0
    }

    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    /// The record of a session, which is the next value.
    pub(crate) fn session_record(&mut self) -> Result<SessionRecord, Unavailable> {
        let mut record = self.list()?;
        let version = record.number()?;
        let revision = record.text()?.into();
        let facts = record.bytes()?;
        let principal = record.optional_bytes()?;
        let principal = principal.map(|bytes| String::from_utf8_lossy(&bytes).into());
        Ok(SessionRecord { principal, revision, facts, version })
    }

    /// The record of a task, which is the next two values.
    pub(crate) fn task_record(&mut self) -> Result<TaskRecord, Unavailable> {
        Ok(TaskRecord { version: self.number()?, state: self.bytes()? })
    }

    /// The values as events of a stream behind this one, none of them the final one.
    pub(crate) fn events(&mut self, stream: StreamNumber, after: u64) -> Result<Vec<Event>, Unavailable> {
        let mut events = Vec::with_capacity(self.len());
        for seq in (after + 1..).take(self.len()) {
            let mut bytes = self.bytes()?;
            if stream == StreamNumber::GET {
                if bytes.len() < POST_KEY {
                    return Err(self.unexpected());
                }
                bytes = bytes.slice(POST_KEY..);
            }
            events.push(Event { seq, bytes, kind: StreamEventKind::Event });
        }
        Ok(events)
    }
}
