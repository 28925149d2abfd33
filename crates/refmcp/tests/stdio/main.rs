//! What `refmcp stdio` promises about its streams: how it reads and writes lines, how it ends, and how it bears load.

#[path = "../support/mod.rs"]
mod support;

mod findings;
mod lines;
mod load;
mod options;
mod parent;
mod prompt_files;
mod redirected;
mod shutdown;
