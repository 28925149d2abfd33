//! `cargo xtask COMMAND`: everything a contributor runs, the same here as in CI.

#![allow(clippy::print_stdout, reason = "a command line program speaks through its output")]

mod bench;
mod conformance;
mod deny;
mod interop;
// The one file of the crates that is read here as well: nothing else is needed of them, and they may be broken.
#[path = "../../crates/refmcp-testkit/src/leaks.rs"]
#[allow(unreachable_pub, dead_code, reason = "it is a module of a library, and not all of it is used here")]
mod leaks;
mod lint;
mod metadata;
mod npm;
mod packages;
mod readme;
mod reference_page;
mod revisions;
mod shell;
mod test;
mod tidy;
mod transcripts;

use std::process::ExitCode;

use anyhow::Result;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  test [FILTER]         everything a change must pass: tidy, lint, the Rust tests, the release build, readme,
                        interop, conformance; with FILTER only the Rust tests whose name contains it
  tidy                  what the architecture promises: dependencies, dates, names, sizes, words, licences
  lint                  rustfmt, clippy and rustdoc, warnings denied
  readme                the README's commands in a fresh clone of what is committed
  interop [CLIENT] [REVISION] [TRANSPORT]
                        foreign clients against the release build over stdio, http, sse and websocket; everything
                        unless one is named
  interop servers [SERVER]
                        the release build's command line against foreign servers, and ours; all unless one is named
  interop inspector     the MCP Inspector's command line beside ours, from the file of docs/integrations.md
  interop browser       the consent page of the built-in authorization server in Chromium
  interop logins        foreign clients log in to the release build, and its command line to foreign servers
  conformance           the official conformance suite against the release build
  transcripts [--update]
                        the recorded conversations: compare them, or write them anew
  reference-page [--update]
                        the tables of docs/reference-server.md: compare them with a running server, or write them
  bench [--update] [PART]
                        our server beside others, as ratios; not part of test, because its numbers vary. PART:
                        stdio, http, memory, fanout or start; --update writes the numbers to docs/benchmarks.md
  deny                  cargo-deny on licences, bans and sources; installs cargo-deny under target/ when absent";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match dispatch(&args) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("{} {error:#}", shell::red("error:"));
            ExitCode::FAILURE
        }
    }
}

fn dispatch(args: &[&str]) -> Result<ExitCode> {
    match args {
        ["test"] => return test::everything(),
        ["test", filter] => test::only(filter)?,
        ["tidy"] => tidy::run()?,
        ["lint"] => lint::run()?,
        ["readme"] => readme::run()?,
        ["interop", "servers", names @ ..] => {
            test::release()?;
            let tally = interop::servers::run(names)?;
            println!("\n{tally}");
            return Ok(tally.exit_code());
        }
        ["interop", "inspector"] => {
            test::release()?;
            let tally = interop::inspector::run()?;
            println!("\n{tally}");
            return Ok(tally.exit_code());
        }
        ["interop", "browser"] => {
            test::release()?;
            let tally = interop::browser::run()?;
            println!("\n{tally}");
            return Ok(tally.exit_code());
        }
        ["interop", "logins"] => {
            test::release()?;
            let tally = interop::logins::run()?;
            println!("\n{tally}");
            return Ok(tally.exit_code());
        }
        ["interop", names @ ..] if names.len() <= 3 => {
            let choice = interop::Choice::from_names(names)?;
            test::release()?;
            let tally = if names.is_empty() { interop::everything()? } else { interop::run(&choice)? };
            println!("\n{tally}");
            return Ok(tally.exit_code());
        }
        ["transcripts"] => transcripts::run(transcripts::Mode::Compare)?,
        ["transcripts", "--update"] => transcripts::run(transcripts::Mode::Update)?,
        ["reference-page"] => reference_page::run(transcripts::Mode::Compare)?,
        ["reference-page", "--update"] => reference_page::run(transcripts::Mode::Update)?,
        ["conformance"] => {
            test::release()?;
            let tally = conformance::run()?;
            println!("\n{tally}");
            return Ok(tally.exit_code());
        }
        ["bench", rest @ ..] => bench::run(rest)?,
        ["deny"] => deny::run()?,
        ["help" | "--help" | "-h"] => println!("{USAGE}"),
        [] => {
            eprintln!("{USAGE}");
            return Ok(ExitCode::from(2));
        }
        _ => {
            eprintln!("cannot do `{}`\n\n{USAGE}", args.join(" "));
            return Ok(ExitCode::from(2));
        }
    }
    Ok(ExitCode::SUCCESS)
}
