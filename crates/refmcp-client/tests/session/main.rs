//! Sessions with servers in the same process, in every revision: no sockets, and paused time.

mod calls;
mod client_tasks;
mod fixture;
mod input;
mod lists;
mod observer;
mod opening;
mod several;
mod skills;
mod subscriptions;
mod tasks;
