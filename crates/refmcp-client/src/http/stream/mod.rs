//! SSE streams: reading events, resuming after a break, and the GET stream of a session.

mod events;
pub(crate) mod get_stream;
mod resume_position;

pub(crate) use events::{EventStream, StreamEnd};
pub(crate) use resume_position::ResumePosition;
