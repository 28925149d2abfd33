//! The endpoint as its clients see it: bytes on a socket.

mod exactness;
mod support;
mod tools;
mod wire;
