//! Servers and clients side by side on this machine: ratios between them mean something, the numbers themselves little.
//!
//! | module | what it is |
//! |---|---|
//! | `servers` | who takes part, and how they are started |
//! | `setup` | building and installing them |
//! | `stdio`, `http`, `instructions`, `memory`, `fanout`, `start`, `client` | the parts, each a section of the page |
//! | `figures` | medians, ratios, tables and goals |
//! | `chart` | the picture |
//! | `page` | where all of it is written down |

mod chart;
mod client;
mod fanout;
mod figures;
mod http;
mod instructions;
mod memory;
mod page;
mod servers;
mod setup;
mod start;
mod stdio;

use anyhow::{Result, bail};

use crate::shell;
use figures::Goal;

/// Runs of each server; they take turns, so that a busy minute hits all of them.
const ROUNDS: usize = 5;

/// What a part has found out.
struct Section {
    /// Tables.
    text: String,
    goals: Vec<Goal>,
    picture: Option<String>,
}

type Part = (&'static str, fn() -> Result<Section>);

const PARTS: [Part; 7] = [
    ("stdio", stdio::run),
    ("http", http::run),
    ("instructions", instructions::run),
    ("memory", memory::run),
    ("fanout", fanout::run),
    ("start", start::run),
    ("client", client::run),
];

/// Runs the parts that are named, or all; with `--update`, what comes out replaces what the page said of them.
///
/// # Errors
/// A part is not known, or something cannot be built, started or measured.
pub fn run(args: &[&str]) -> Result<()> {
    let update = args.contains(&"--update");
    let named: Vec<&str> = args.iter().copied().filter(|arg| *arg != "--update").collect();
    if let Some(unknown) = named.iter().find(|name| PARTS.iter().all(|part| part.0 != **name)) {
        bail!("there is no benchmark `{unknown}`; there are {}", PARTS.map(|part| part.0).join(", "));
    }
    setup::prepare(
        named.iter().any(|name| !["stdio", "instructions", "client"].contains(name)) || named.is_empty(),
    )?;
    for (name, run) in PARTS {
        if !named.is_empty() && !named.contains(&name) {
            continue;
        }
        shell::section(name);
        let section = run()?;
        let text = format!("{}{}", section.text, figures::goals(&section.goals));
        println!("\n{text}");
        if update {
            page::update(name, &text)?;
            if let Some(picture) = section.picture {
                page::write_picture(&picture)?;
            }
        }
    }
    Ok(())
}
