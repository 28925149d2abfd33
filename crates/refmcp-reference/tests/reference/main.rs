//! The reference server as clients see it, over a pipe in memory.

mod apps;
mod asking;
mod cancelling;
mod client;
mod conformance;
mod files;
mod lists;
mod models;
mod page;
mod pages;
mod prompt_files;
mod prompts;
mod replay;
mod resources;
mod schemas;
mod skills;
mod tasks;
mod tools;
