//! `cargo xtask COMMAND`: everything a contributor runs, the same here as in CI.

#![allow(clippy::print_stdout, reason = "a command line program speaks through its output")]

mod deny;
mod fuzz;
mod lint;
mod metadata;
mod packages;
mod readme;
mod reference_page;
mod rules_page;
mod rust_tests;
mod schemas;
mod simulate;
mod test;
mod tidy;
mod transcripts;

use std::process::ExitCode;

use anyhow::Result;
use refmcp_runners::{Build, Tally, bench, conformance, interop, shell, soak};

const USAGE: &str = "\
usage: cargo xtask COMMAND

  quick                 what most changes break first: tidy, rustfmt, and clippy and tests of refmcp-proto, refmcp-server
                        and refmcp-reference, with the transcripts and the reference page
  test [FILTER]         everything a change must pass: tidy, lint, the Rust tests, the release build, readme,
                        interop, conformance, soak short; with FILTER only the Rust tests whose name contains it. Programs
                        that the Rust tests run, nginx and HAProxy, are installed where they are missing, as root on Debian
  tidy                  what the architecture promises: dependencies, dates, names, sizes, words, licences
  lint                  rustfmt, clippy and rustdoc, warnings denied
  schemas               the official schemas that tests check messages against: found beside the checkout, or
                        fetched from the registry into target/spec; what needs them does this by itself
  readme                the README's commands in a fresh clone of what is committed
  interop [CLIENT] [REVISION] [TRANSPORT]
                        foreign clients against our server over stdio, http, sse and websocket; everything
                        unless one is named
  interop servers [SERVER]
                        our command line against foreign servers, and ours; all unless one is named
  interop referee [--update]
                        `refmcp check` on the same servers: what it finds is compared with interop/referee, or written
  interop exactness     what servers make of streams that break, stall and are resumed, as a table; not part of test
  interop inspector     the MCP Inspector's command line beside ours, from the file of docs/integrations.md
  interop browser       the consent page and the apps, in hosts, in Chromium
  interop replays       recordings with foreign servers and clients, used again
  interop tour          foreign clients go through the tour, and must do all that they have
  interop logins        foreign clients log in to our server, and our command line to foreign servers
  conformance           the official conformance suite against our server, client and authorization server
  transcripts [--update]
                        the recorded conversations: compare them, or write them anew
  reference-page [--update]
                        the tables of docs/reference-server.md: compare them with a running server, or write them
  rules-page [--update]
                        docs/rules.md: compare it with the catalogue of rules, or write it
  simulate [COUNT] [--seed SEED]
                        COUNT simulated conversations, a million unless said otherwise, from SEED on; with a seed
                        alone, that conversation and its transcript
  bench [--update] [PART]
                        our server beside others, as ratios; not part of test, because its numbers vary. PART:
                        stdio, http, instructions, memory, fanout, start or client; --update writes the numbers to docs/benchmarks.md
  fuzz [TARGET] [SECONDS]
                        libFuzzer on one target of fuzz/, or on all, for 60 s each unless SECONDS are named; prints
                        executions and findings. Installs cargo-fuzz under target/ when absent; not part of test, which
                        feeds the same targets a bounded number of inputs
  fuzz --minimize [TARGET]
                        adds the new inputs that reach more code to the corpora
  soak short            the same as below for seconds, with few clients and without a check of latency; needs Linux
  soak MINUTES [--strict] [--update]
                        our server under good and hostile load: memory, answers, and that all is as before afterwards. With
                        --strict a high latency fails too; --update draws docs/soak.svg
  deny                  cargo-deny on licences, bans and sources; installs cargo-deny under target/ when absent

`interop`, `conformance` and `soak` build the working tree with the profile fast-release, the release profile without
optimization across crates. `test` uses the release build of a fresh clone for them, unless there are uncommitted
changes.";

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
        ["test", filter] => return test::only(filter),
        ["quick"] => return test::quick(),
        ["tidy"] => tidy::run()?,
        ["lint"] => lint::run()?,
        ["readme"] => readme::run(&readme::Checkout::fresh()?)?,
        ["schemas"] => {
            schemas::prepare()?;
        }
        ["interop", names @ ..] => return Ok(summary(interop::run_named(names)?)),
        ["transcripts"] => transcripts::run(transcripts::Mode::Compare)?,
        ["transcripts", "--update"] => transcripts::run(transcripts::Mode::Update)?,
        ["reference-page"] => reference_page::run(transcripts::Mode::Compare)?,
        ["reference-page", "--update"] => reference_page::run(transcripts::Mode::Update)?,
        ["rules-page"] => rules_page::run(transcripts::Mode::Compare)?,
        ["rules-page", "--update"] => rules_page::run(transcripts::Mode::Update)?,
        ["conformance"] => return Ok(summary(conformance::run(&Build::of_tree()?)?)),
        ["simulate", rest @ ..] => simulate::run(rest)?,
        ["soak", "short"] => return Ok(summary(soak::short(&Build::of_tree()?)?)),
        ["soak", rest @ ..] => return Ok(summary(soak::run(rest)?)),
        ["bench", rest @ ..] => bench::run(rest)?,
        ["fuzz", arguments @ ..] => fuzz::run(arguments)?,
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

/// Prints what was counted, alone on the last line.
fn summary(tally: Tally) -> ExitCode {
    println!("\n{tally}");
    tally.exit_code()
}
