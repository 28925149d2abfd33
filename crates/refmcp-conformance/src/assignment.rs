//! What the suite tells a client: by its last argument and by environment variables.

use refmcp_client::Revision;
use refmcp_client::model::JsonObject;

const SCENARIO: &str = "MCP_CONFORMANCE_SCENARIO";
const REVISION: &str = "MCP_CONFORMANCE_PROTOCOL_VERSION";
const CONTEXT: &str = "MCP_CONFORMANCE_CONTEXT";

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Assignment {
    pub(crate) scenario: String,
    /// Where the server is.
    pub(crate) url: String,
    /// What to speak with it.
    pub(crate) revision: Revision,
    /// What else the scenario needs; empty where it needs nothing.
    pub(crate) context: JsonObject,
}

/// Why it is not known what is to be done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadAssignment {
    #[error("the last argument must be the URL of a server, and there is none")]
    NoUrl,
    #[error("{0} is not set: this program is started by the conformance suite")]
    Missing(&'static str),
    #[error("{REVISION} is {0:?}, which is not a known revision of the protocol")]
    Revision(String),
    #[error("{CONTEXT} is not a JSON object: {0}")]
    Context(String),
    #[error("{CONTEXT} does not tell {0}")]
    Untold(String),
}

impl Assignment {
    /// Reads it from the arguments after the name of the program, and from variables.
    pub(crate) fn read(
        arguments: impl Iterator<Item = String>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, BadAssignment> {
        let needed = |name| variable(name).ok_or(BadAssignment::Missing(name));
        let url = arguments.last().ok_or(BadAssignment::NoUrl)?;
        let scenario = needed(SCENARIO)?;
        let revision = needed(REVISION)?;
        let revision = revision.parse().map_err(|_| BadAssignment::Revision(revision))?;
        let context = match variable(CONTEXT) {
            Some(text) => {
                serde_json::from_str(&text).map_err(|fault| BadAssignment::Context(fault.to_string()))?
            }
            None => JsonObject::new(),
        };
        Ok(Self { scenario, url, revision, context })
    }

    /// A text of the context that the scenario cannot do without.
    pub(crate) fn told(&self, name: &str) -> Result<&str, BadAssignment> {
        let text = self.context.get(name).and_then(|value| value.as_str());
        text.ok_or_else(|| BadAssignment::Untold(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const URL: &str = "http://localhost:1/mcp";

    fn read(arguments: &[&str], variables: &[(&str, &str)]) -> Result<Assignment, BadAssignment> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        Assignment::read(arguments.iter().map(|argument| (*argument).to_owned()), variable)
    }

    #[test]
    fn everything_is_read() {
        let variables =
            [(SCENARIO, "tools_call"), (REVISION, "2025-06-18"), (CONTEXT, "{\"name\":\"tools_call\"}")];
        let assignment = read(&["--something", URL], &variables).unwrap();
        assert_eq!((assignment.scenario.as_str(), assignment.url.as_str()), ("tools_call", URL));
        assert_eq!(assignment.revision, "2025-06-18".parse().unwrap());
        assert_eq!(assignment.context.get("name"), Some(&json!("tools_call")));
        assert_eq!(assignment.told("name"), Ok("tools_call"));
        assert_eq!(assignment.told("secret"), Err(BadAssignment::Untold("secret".to_owned())));
    }

    #[test]
    fn the_context_may_be_absent() {
        let assignment = read(&[URL], &[(SCENARIO, "initialize"), (REVISION, "2026-07-28")]).unwrap();
        assert!(assignment.context.is_empty());
    }

    #[test]
    fn what_is_missing_is_named() {
        let (scenario, revision) = ((SCENARIO, "initialize"), (REVISION, "2025-11-25"));
        assert_eq!(read(&[], &[scenario, revision]), Err(BadAssignment::NoUrl));
        assert_eq!(read(&[URL], &[revision]), Err(BadAssignment::Missing(SCENARIO)));
        assert_eq!(read(&[URL], &[scenario]), Err(BadAssignment::Missing(REVISION)));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let scenario = (SCENARIO, "initialize");
        let fault = read(&[URL], &[scenario, (REVISION, "2020-01-01")]).unwrap_err();
        assert_eq!(fault, BadAssignment::Revision("2020-01-01".to_owned()));
        for context in ["", "[]", "{"] {
            let fault = read(&[URL], &[scenario, (REVISION, "2025-11-25"), (CONTEXT, context)]).unwrap_err();
            assert!(matches!(fault, BadAssignment::Context(_)), "{context}: {fault}");
        }
    }
}
