//! What the library promises to those who write servers with it, each promise over a pipe in memory.

mod apps;
mod arguments;
mod asking;
mod building;
mod cancelling;
mod completion;
mod concurrency;
mod endings;
mod fairness;
mod forwarding;
mod lists;
mod methods;
mod observer;
mod pages;
mod panics;
mod records;
mod replay;
mod session_requests;
mod sessions;
mod slow_reader;
mod states;
mod support;
mod task_attacks;
mod tasks;
mod unanswered;
mod updates;
