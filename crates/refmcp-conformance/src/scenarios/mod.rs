//! The scenarios by their names. Each function does what one scenario wants; the suite watches and judges.

mod headers;
mod input;
mod schemas;
mod streams;
mod tools;

use std::error::Error;
use std::future::Future;
use std::pin::Pin;

use crate::assignment::Assignment;

/// Why a scenario could not be played to its end.
pub(crate) type Fault = Box<dyn Error + Send + Sync>;

/// Plays a scenario.
pub(crate) type Scenario = fn(Assignment) -> Pin<Box<dyn Future<Output = Result<(), Fault>>>>;

/// Every scenario but those of authorization, which are to have a file of their own beside the others.
const SCENARIOS: [(&str, Scenario); 11] = [
    ("initialize", |it| Box::pin(tools::initialize(it))),
    ("tools_call", |it| Box::pin(tools::call(it))),
    ("elicitation-sep1034-client-defaults", |it| Box::pin(input::defaults(it))),
    ("sep-2322-client-request-state", |it| Box::pin(input::request_state(it))),
    ("sse-retry", |it| Box::pin(streams::retry(it))),
    ("request-metadata", |it| Box::pin(headers::metadata(it))),
    ("http-standard-headers", |it| Box::pin(headers::standard(it))),
    ("http-custom-headers", |it| Box::pin(headers::mirrored(it))),
    ("http-invalid-tool-headers", |it| Box::pin(headers::invalid(it))),
    ("json-schema-ref-no-deref", |it| Box::pin(schemas::references(it))),
    ("json-schema-2020-12-preservation", |it| Box::pin(schemas::preservation(it))),
];

/// The scenario of this name.
pub(crate) fn find(name: &str) -> Option<Scenario> {
    SCENARIOS.iter().find(|(known, _)| *known == name).map(|(_, scenario)| *scenario)
}

/// What the scenarios are called.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    SCENARIOS.iter().map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use refmcp_client::model::JsonObject;

    use super::*;

    #[test]
    fn a_scenario_is_found_by_its_whole_name() {
        for name in names() {
            assert!(find(name).is_some(), "{name}");
        }
        assert!(find("initial").is_none());
        assert!(find("").is_none());
        assert_eq!(names().collect::<BTreeSet<_>>().len(), SCENARIOS.len());
    }

    #[test]
    fn without_a_server_every_scenario_fails() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        for (name, scenario) in SCENARIOS {
            let assignment = Assignment {
                scenario: name.to_owned(),
                // Nothing listens on the port that stands for any.
                url: "http://127.0.0.1:0/mcp".to_owned(),
                revision: "2026-07-28".parse().unwrap(),
                context: JsonObject::new(),
            };
            let fault = runtime.block_on(scenario(assignment)).unwrap_err().to_string();
            assert!(fault.contains("127.0.0.1"), "{name}: {fault}");
        }
    }
}
