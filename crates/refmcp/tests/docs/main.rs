//! The examples of the documents, run as they stand: the guides to HTTP, to the client, to audits, to the reference server and
//! to other hosts, and the README where it uses curl or the client.

#![cfg(unix)]

mod architecture;
mod console;
mod integrations;
mod library;
mod server;
mod shell;
mod terminal;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use refmcp_testkit::ports::free_port;

use console::{Example, difference, examples};
use server::Server;
use shell::Shell;

/// What a stream says when it has nothing to say, after a while; a slow machine sees more of it.
const KEEP_ALIVE: &str = ": alive\n\n";

/// The port that the documents name for the server that runs throughout.
const PORT: &str = "3000";

/// What stands before a port.
const BEFORE_PORTS: [&str; 3] = ["127.0.0.1:", "localhost:", "--port "];

impl Server {
    /// The port that stands for the one that the documents name.
    fn ports(&self) -> BTreeMap<String, String> {
        BTreeMap::from([(PORT.to_owned(), self.port.clone())])
    }
}

/// The command that starts that server.
const SERVE: &str = "refmcp serve";

#[test]
fn the_guide_to_http() {
    beside_a_server("docs/http.md");
}

#[test]
fn the_guide_to_the_client() {
    beside_a_server("docs/client.md");
}

#[test]
fn the_guide_to_the_reference_server() {
    beside_a_server("docs/reference-server.md");
}

#[test]
fn the_guide_to_apps() {
    beside_a_server("docs/apps.md");
}

#[test]
fn the_guide_to_other_hosts() {
    beside_a_server("docs/integrations.md");
}

#[test]
fn the_guide_to_authorization() {
    let examples = examples(&read("docs/authorization.md"));
    run("docs/authorization.md", &examples, &ports(&examples, BTreeMap::new()));
}

#[test]
fn the_guide_to_operating() {
    let examples = examples(&read("docs/operating.md"));
    run("docs/operating.md", &examples, &ports(&examples, BTreeMap::new()));
}

#[test]
fn the_guide_to_scaling() {
    let examples = examples(&read("docs/scaling.md"));
    run("docs/scaling.md", &examples, &ports(&examples, BTreeMap::new()));
}

#[test]
fn the_guide_to_faults() {
    let examples = examples(&read("docs/faults.md"));
    run("docs/faults.md", &examples, &ports(&examples, BTreeMap::new()));
}

#[test]
fn the_guide_to_skills() {
    let examples = examples(&read("docs/skills.md"));
    run("docs/skills.md", &examples, &ports(&examples, BTreeMap::new()));
}

#[test]
fn the_guide_to_audits() {
    let examples = examples(&read("docs/audit.md"));
    run("docs/audit.md", &examples, &ports(&examples, BTreeMap::new()));
}

#[test]
fn the_readme() {
    let mut examples = examples(&read("README.md"));
    for program in ["curl ", "refmcp "] {
        let count = examples.iter().filter(|example| example.command.starts_with(program)).count();
        assert!(count > 0, "README.md has no example with {program}");
    }
    // Those of cargo build what is built already, or run the tests, of which this is one.
    examples.retain(|example| !example.command.starts_with("cargo "));
    let server = Server::start();
    run("README.md", &examples, &ports(&examples, server.ports()));
}

/// Runs the examples of a document, one of which starts the server that the others use.
fn beside_a_server(document: &str) {
    let mut examples = examples(&read(document));
    let start = examples.iter().position(|example| example.command == SERVE);
    let start = examples.remove(start.unwrap_or_else(|| panic!("{document} does not say `{SERVE}`")));
    let server = Server::start();
    let ports = ports(&examples, server.ports());
    let banner = renumbered(&start.expected, &ports);
    assert_eq!(difference(&banner, &server.banner), None, "{document}:{}", start.line);
    run(document, &examples, &ports);
}

/// Runs all examples in one shell. What they print is compared at the end, since some are left running.
fn run(document: &str, examples: &[Example], ports: &BTreeMap<String, String>) {
    for (program, version) in [("curl", "--version"), ("openssl", "version")] {
        let found = Command::new(program).arg(version).stdout(Stdio::null()).status();
        assert!(found.is_ok(), "{program} is needed to run the examples of {document}, and is not installed");
    }
    let mut shell = Shell::start(Path::new(env!("CARGO_BIN_EXE_refmcp")).parent().unwrap());
    for (name, content) in integrations::files(&read(document)) {
        shell.put(&name, &renumbered(&content, ports));
    }
    let mut faults = String::new();
    let mut printed = Vec::new();
    for example in examples {
        let (command, expected) = (renumbered(&example.command, ports), renumbered(&example.expected, ports));
        let ended = match example.on_terminal {
            // Elsewhere there is no program that makes a terminal the controlling one.
            true if !cfg!(target_os = "linux") => continue,
            true => shell.run_on_terminal(&command, &expected),
            false => shell.run(&command),
        };
        match ended {
            Ok(output) => printed.push((example, output)),
            Err(error) => {
                faults += &format!("{document}:{}: $ {}\n  {error}\n", example.line, example.command);
                break;
            }
        }
    }
    for (example, output) in printed {
        let expected = renumbered(&example.expected, ports);
        let difference = |text: &str| difference(&expected, &text.replace(KEEP_ALIVE, ""));
        let actual = if example.command.ends_with('&') {
            output.wait_until(|text| difference(text).is_none())
        } else {
            output.text()
        };
        if let Some(difference) = difference(&actual) {
            faults += &format!("{document}:{}: $ {}\n{difference}\n", example.line, example.command);
        }
    }
    assert!(faults.is_empty(), "\n{faults}");
}

/// The ports of the document, and those that are used in their place; some are taken already.
fn ports(examples: &[Example], mut ports: BTreeMap<String, String>) -> BTreeMap<String, String> {
    for example in examples {
        for before in BEFORE_PORTS {
            for after in example.command.split(before).skip(1) {
                let port: String = after.chars().take_while(char::is_ascii_digit).collect();
                if !port.is_empty() {
                    ports.entry(port).or_insert_with(|| free_port().to_string());
                }
            }
        }
    }
    ports
}

/// The text with real ports in place of the document's.
fn renumbered(text: &str, ports: &BTreeMap<String, String>) -> String {
    let mut done = String::new();
    for part in text.split_inclusive(|c: char| !c.is_ascii_digit()) {
        let digits = part.trim_end_matches(|c: char| !c.is_ascii_digit());
        let is_port = BEFORE_PORTS.iter().any(|before| done.ends_with(before));
        done += ports.get(digits).filter(|_| is_port).map_or(digits, String::as_str);
        done += &part[digits.len()..];
    }
    done
}

fn read(document: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(document);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn only_ports_are_renumbered() {
    let ports =
        BTreeMap::from([("3000".to_owned(), "30001".to_owned()), ("30001".to_owned(), "7".to_owned())]);
    let text = "--port 3000 http://127.0.0.1:3000/3000 localhost:30001, 127.0.0.1:3000";
    assert_eq!(
        renumbered(text, &ports),
        "--port 30001 http://127.0.0.1:30001/3000 localhost:7, 127.0.0.1:30001"
    );
}
