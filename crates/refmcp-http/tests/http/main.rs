//! The endpoint as its clients see it: bytes on a socket.

mod commit;
mod exactness;
mod guard;
mod legacy;
mod limits;
mod secrets;
mod sessions;
mod shutdown;
mod standing;
mod stateless;
mod support;
mod tools;
mod websocket;
mod wire;
