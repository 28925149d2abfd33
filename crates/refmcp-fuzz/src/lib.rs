//! Fuzz targets for every parser and both engines, as functions from bytes to nothing: a broken invariant panics.
//!
//! The folder `fuzz/` of the repository feeds them from libFuzzer. The tests of this crate feed them from the same corpora
//! and a bounded number of seeded mutations ([`property::run`]), so that they never stop compiling and never stop holding.
//!
//! A target is a function in [`targets`] and a row of [`TARGETS`].

pub mod input;
pub mod property;
pub mod targets;

/// A target: it panics when the input breaks an invariant.
pub type Target = fn(&[u8]);

/// All targets by name, except the one of configuration files, which is in the program `refmcp`.
pub const TARGETS: [(&str, Target); 21] = [
    ("app", targets::app::run),
    ("challenge", targets::challenge::run),
    ("client_engine", targets::client_engine::run),
    ("decode", targets::decode::run),
    ("http_endpoint", targets::http_endpoint::run),
    ("json", targets::json::run),
    ("jwks", targets::jwks::run),
    ("jws", targets::jws::run),
    ("lines", targets::lines::run),
    ("metadata", targets::metadata::run),
    ("oauth_flow", targets::oauth_flow::run),
    ("post_headers", targets::post_headers::run),
    ("prompt_file", targets::prompt_file::run),
    ("replay", targets::replay::run),
    ("report", targets::report::run),
    ("seal", targets::seal::run),
    ("server_engine", targets::server_engine::run),
    ("skill", targets::skill::run),
    ("sse", targets::sse::run),
    ("uri_template", targets::uri_template::run),
    ("websocket", targets::websocket::run),
];
