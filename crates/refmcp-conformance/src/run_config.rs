//! The input of a run: the last argument and the environment variables that the suite sets.

use refmcp_client::Revision;
use refmcp_client::model::JsonObject;

const SCENARIO: &str = "MCP_CONFORMANCE_SCENARIO";
const REVISION: &str = "MCP_CONFORMANCE_PROTOCOL_VERSION";
const CONTEXT: &str = "MCP_CONFORMANCE_CONTEXT";

/// The input of a run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RunConfig {
    pub(crate) scenario: String,
    /// The URL of the server.
    pub(crate) url: String,
    /// The revision to speak.
    pub(crate) revision: Revision,
    /// What else the scenario needs.
    pub(crate) context: JsonObject,
}

/// Why the input is not usable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RunConfigError {
    #[error("the last argument must be the URL of a server, and there is none")]
    NoUrl,
    #[error("{0} is not set: this program is started by the conformance suite")]
    Missing(&'static str),
    #[error("{REVISION} is {0:?}, which is not a known revision of the protocol")]
    Revision(String),
    #[error("{CONTEXT} is not a JSON object: {0}")]
    Context(String),
    #[error("{CONTEXT} has no {0}")]
    MissingContext(String),
}

impl RunConfig {
    /// Reads it from the arguments after the name of the program, and from variables.
    pub(crate) fn read(
        arguments: impl Iterator<Item = String>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, RunConfigError> {
        let needed = |name| variable(name).ok_or(RunConfigError::Missing(name));
        let url = arguments.last().ok_or(RunConfigError::NoUrl)?;
        let scenario = needed(SCENARIO)?;
        let revision = needed(REVISION)?;
        let revision = revision.parse().map_err(|_| RunConfigError::Revision(revision))?;
        let context = match variable(CONTEXT) {
            Some(text) => {
                serde_json::from_str(&text).map_err(|error| RunConfigError::Context(error.to_string()))?
            }
            None => JsonObject::new(),
        };
        Ok(Self { scenario, url, revision, context })
    }

    /// A text of the context that the scenario cannot do without.
    pub(crate) fn context_text(&self, name: &str) -> Result<&str, RunConfigError> {
        let text = self.context.get(name).and_then(|value| value.as_str());
        text.ok_or_else(|| RunConfigError::MissingContext(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const URL: &str = "http://localhost:1/mcp";

    fn read(arguments: &[&str], variables: &[(&str, &str)]) -> Result<RunConfig, RunConfigError> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        RunConfig::read(arguments.iter().map(|argument| (*argument).to_owned()), variable)
    }

    #[test]
    fn everything_is_read() {
        let variables =
            [(SCENARIO, "tools_call"), (REVISION, "2025-06-18"), (CONTEXT, "{\"name\":\"tools_call\"}")];
        let config = read(&["--something", URL], &variables).unwrap();
        assert_eq!((config.scenario.as_str(), config.url.as_str()), ("tools_call", URL));
        assert_eq!(config.revision, "2025-06-18".parse().unwrap());
        assert_eq!(config.context.get("name"), Some(&json!("tools_call")));
        assert_eq!(config.context_text("name"), Ok("tools_call"));
        assert_eq!(config.context_text("secret"), Err(RunConfigError::MissingContext("secret".to_owned())));
    }

    #[test]
    fn the_context_may_be_absent() {
        let config = read(&[URL], &[(SCENARIO, "initialize"), (REVISION, "2026-07-28")]).unwrap();
        assert!(config.context.is_empty());
    }

    #[test]
    fn what_is_missing_is_named() {
        let (scenario, revision) = ((SCENARIO, "initialize"), (REVISION, "2025-11-25"));
        assert_eq!(read(&[], &[scenario, revision]), Err(RunConfigError::NoUrl));
        assert_eq!(read(&[URL], &[revision]), Err(RunConfigError::Missing(SCENARIO)));
        assert_eq!(read(&[URL], &[scenario]), Err(RunConfigError::Missing(REVISION)));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let scenario = (SCENARIO, "initialize");
        let error = read(&[URL], &[scenario, (REVISION, "2020-01-01")]).unwrap_err();
        assert_eq!(error, RunConfigError::Revision("2020-01-01".to_owned()));
        for context in ["", "[]", "{"] {
            let error = read(&[URL], &[scenario, (REVISION, "2025-11-25"), (CONTEXT, context)]).unwrap_err();
            assert!(matches!(error, RunConfigError::Context(_)), "{context}: {error}");
        }
    }
}
