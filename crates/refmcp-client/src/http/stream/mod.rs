//! SSE streams: reading events, resuming after a break, and the GET stream of a session.

mod cursor;
mod events;
pub(crate) mod get_stream;

pub(crate) use cursor::StreamCursor;
pub(crate) use events::{EventStream, StreamEnd};
