//! The driver with a scripted service over pipes that are narrower than any message.

mod ending;
mod handlers;
mod pressure;
mod script;
mod traffic;
