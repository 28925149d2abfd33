//! Bounded runs of all fuzz targets, and messages of both engines against the official schemas.

use refmcp_fuzz::TARGETS;
use refmcp_fuzz::property::{self, FEW, MANY};
use refmcp_fuzz::targets::{client_engine, server_engine};
use refmcp_proto::revision::Revision;
use refmcp_testkit::schema::{self, Direction};
use serde_json::Value;

/// A test for each target without a check of its own.
macro_rules! bounded_runs {
    ($($name:ident)+) => {
        $(
            #[test]
            fn $name() {
                let name = stringify!($name);
                let (_, target) = TARGETS.into_iter().find(|(known, _)| *known == name).expect("a target");
                property::run(name, if matches!(name, "http_endpoint" | "replay" | "report") { FEW } else { MANY }, target);
            }
        )+

        /// The targets that have a test.
        const TESTED: &[&str] = &[$(stringify!($name),)+ "client_engine", "server_engine"];
    };
}

bounded_runs! {
    app challenge decode http_endpoint json jwks jws lines metadata oauth_flow post_headers prompt_file replay report seal
    skill sse uri_template websocket
}

#[test]
fn client_engine() {
    let schemas = schema::load_all();
    property::run("client_engine", FEW, |bytes| {
        client_engine::run_checked(bytes, &|revision, message, answers| {
            check(&schemas, Direction::FromClient, revision, message, answers);
        });
    });
}

#[test]
fn server_engine() {
    let schemas = schema::load_all();
    property::run("server_engine", FEW, |bytes| {
        server_engine::run_checked(bytes, &|revision, message, answers| {
            check(&schemas, Direction::FromServer, revision, message, answers);
        });
    });
}

#[test]
fn every_target_has_a_test_and_a_file_in_fuzz() {
    let folder = property::corpus("").join("../fuzz_targets");
    let files =
        std::fs::read_dir(folder).expect("the folder of targets").map(|file| file.expect("a file").path());
    let mut files: Vec<String> =
        files.map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned()).collect();
    files.sort();
    let names: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
    assert_eq!(files, names);
    for name in names {
        assert!(TESTED.contains(&name), "{name} has no test");
    }
}

fn check(
    schemas: &schema::Schemas,
    direction: Direction,
    revision: Revision,
    message: &Value,
    answers: Option<&str>,
) {
    if let Err(error) = schemas[&revision].check(direction, message, answers) {
        panic!("{error}\n  {message}");
    }
}
