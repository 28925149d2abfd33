//! What a bridge learns from the messages that pass, because transports want to know it of what they send: the revision that
//! was agreed on, and which arguments of which tools are repeated in headers.

use std::collections::HashMap;
use std::sync::Arc;

use refmcp_proto::engine::client::ClientMessageKind;
use refmcp_proto::model::JsonObject;
use refmcp_proto::param_headers::{ParamHeader, param_headers};
use refmcp_proto::revision::{Revision, Rules};
use serde::Deserialize;

use super::glance::Message;

/// Tools whose marks are remembered.
const MOST_TOOLS: usize = 10_000;

/// What was learned.
#[derive(Debug, Default)]
pub(super) struct Learned {
    /// What holds in the session.
    pub(super) session: Option<&'static Rules>,
    marks: HashMap<String, Vec<ParamHeader>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Opened {
    protocol_version: String,
}

#[derive(Deserialize)]
struct Tools {
    tools: Vec<Tool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tool {
    name: String,
    input_schema: JsonObject,
}

impl Learned {
    /// Takes note of the result of a request.
    pub(super) fn note(&mut self, method: &str, result: &str) {
        if method == "initialize" {
            // A revision that is unknown here may be known to the two who talk.
            let opened: Option<Opened> = serde_json::from_str(result).ok();
            let revision = opened.and_then(|opened| opened.protocol_version.parse::<Revision>().ok());
            self.session = revision.map(Revision::rules);
        }
        // Few servers mark anything, and lists are long.
        if method == "tools/list" && result.contains("x-mcp-header") {
            let tools = serde_json::from_str(result).map(|list: Tools| list.tools).unwrap_or_default();
            for tool in tools {
                if self.marks.len() < MOST_TOOLS
                    && let Ok(marks) = param_headers(&tool.input_schema)
                {
                    self.marks.insert(tool.name, marks);
                }
            }
        }
    }

    /// What holds for a message of the client.
    pub(super) fn rules(&self, message: &Message<'_>) -> Option<&'static Rules> {
        match &message.meta.revision {
            Some(stated) => stated.parse::<Revision>().ok().map(Revision::rules),
            None if message.is("initialize") => None,
            None => self.session,
        }
    }

    /// What kind of message it is.
    pub(super) fn kind(&self, message: &Message<'_>) -> ClientMessageKind {
        let Some(method) = &message.method else { return ClientMessageKind::Response };
        if message.id.is_none() {
            return ClientMessageKind::Notification { method: Arc::from(&**method) };
        }
        let name = message.params.name(method);
        let tool = name.as_deref().filter(|_| method == "tools/call");
        let marked = || tool.map(|tool| self.repeated(tool, message));
        let repeated = message.repeated.clone().or_else(marked);
        ClientMessageKind::Request {
            method: Arc::from(&**method),
            name: name.map(Arc::from),
            param_headers: repeated.unwrap_or_default(),
        }
    }

    fn repeated(&self, tool: &str, message: &Message<'_>) -> Vec<(String, String)> {
        let Some(marks) = self.marks.get(tool).filter(|marks| !marks.is_empty()) else { return Vec::new() };
        let arguments =
            message.params.arguments().and_then(|text| serde_json::from_str::<JsonObject>(text).ok());
        let Some(arguments) = arguments else { return Vec::new() };
        let values = marks.iter().filter_map(|mark| Some((mark.name.clone(), mark.value(&arguments)?)));
        values.collect()
    }
}

#[cfg(test)]
mod tests {
    use refmcp_proto::revision::Lifecycle;

    use super::super::glance::read;
    use super::*;

    #[test]
    fn a_session_speaks_what_was_agreed_on() {
        let mut learned = Learned::default();
        let ping = read(br#"{"id":1,"method":"ping"}"#).unwrap().remove(0);
        assert_eq!(learned.rules(&ping), None);
        let agreed = Revision::LATEST_SESSION.rules();
        learned.note("initialize", &format!(r#"{{"protocolVersion":"{}"}}"#, agreed.revision.as_str()));
        assert_eq!(learned.rules(&ping), Some(agreed));
        let alone = format!(
            r#"{{"id":1,"method":"ping","params":{{"_meta":{{"io.modelcontextprotocol/protocolVersion":"{}"}}}}}}"#,
            Revision::LATEST.as_str()
        );
        let alone = read(alone.as_bytes()).unwrap().remove(0);
        assert_eq!(learned.rules(&alone).unwrap().lifecycle, Lifecycle::PerRequest);
        learned.note("initialize", r#"{"protocolVersion":"1999-01-01"}"#);
        assert_eq!(learned.rules(&ping), None);
    }

    #[test]
    fn marked_arguments_are_repeated() {
        let mut learned = Learned::default();
        learned.note(
            "tools/list",
            r#"{"tools":[{"name":"t","inputSchema":{"properties":{"r":{"type":"string","x-mcp-header":"Region"}}}}]}"#,
        );
        let call = read(br#"{"id":1,"method":"tools/call","params":{"name":"t","arguments":{"r":"eu"}}}"#);
        let ClientMessageKind::Request { method, name, param_headers } = learned.kind(&call.unwrap()[0])
        else {
            panic!()
        };
        assert_eq!((&*method, name.as_deref()), ("tools/call", Some("t")));
        assert_eq!(param_headers, [("Region".to_owned(), "eu".to_owned())]);
    }
}
