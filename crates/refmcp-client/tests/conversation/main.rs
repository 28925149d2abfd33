//! Conversations with servers in the same process, in every revision: no sockets, and time that jumps.

mod asking;
mod calls;
mod fixture;
mod lists;
mod opening;
mod several;
