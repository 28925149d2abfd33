//! OAuth scopes that a tool requires of the access token (`insufficient_scope`).

use std::borrow::Cow;
use std::sync::Arc;

use refmcp_proto::jsonrpc::RpcError;
use refmcp_proto::revision::Method;
use serde::Deserialize;
use serde_json::json;

use crate::server::Server;
use crate::session::Session;

/// The code of the `insufficient_scope` error; over HTTP its status is 403.
pub const INSUFFICIENT_SCOPE: i64 = -31403;

/// The member of the parameters that is needed here.
#[derive(Deserialize)]
struct Named<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
}

impl Server {
    /// Whether requests of a method may take scopes at all.
    pub fn may_need_scopes(&self, method: &str) -> bool {
        method == Method::CallTool.name()
    }

    /// The scopes that a request requires; invalid parameters require none, and are refused later.
    pub fn scopes_needed(&self, method: &str, params: Option<&str>) -> Vec<Arc<str>> {
        let Some(name) = tool(method, params) else { return Vec::new() };
        self.catalog().tools.get(&name).map(|tool| tool.scopes.clone()).unwrap_or_default()
    }
}

impl Session {
    /// The scopes that a request of this session takes, which may have tools of its own.
    pub fn scopes_needed(&self, method: &str, params: Option<&str>) -> Vec<Arc<str>> {
        let Some(name) = tool(method, params) else { return Vec::new() };
        let own = self.catalog().and_then(|own| own.tools.get(&name).map(|tool| tool.scopes.clone()));
        own.unwrap_or_else(|| self.server().scopes_needed(method, params))
    }
}

/// The tool that a request calls.
fn tool<'a>(method: &str, params: Option<&'a str>) -> Option<Cow<'a, str>> {
    if method != Method::CallTool.name() {
        return None;
    }
    serde_json::from_str::<Named<'a>>(params?).ok().map(|named| named.name)
}

/// Whether there is a token that lacks one of the scopes.
pub(crate) fn lacks(held: Option<&[Box<str>]>, needed: &[Arc<str>]) -> bool {
    let Some(held) = held else { return false };
    !needed.iter().all(|scope| held.iter().any(|known| **known == **scope))
}

/// The `insufficient_scope` error, with the scopes that are needed.
pub(crate) fn insufficient_scope(needed: &[Arc<str>]) -> RpcError {
    let needed = needed.join(" ");
    RpcError::new(INSUFFICIENT_SCOPE, format!("the token is not good for this; it takes the scopes {needed}"))
        .with_data(json!({ "error": "insufficient_scope", "scope": needed }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Call, NoArguments, Tool};

    #[test]
    fn a_call_takes_what_its_tool_takes() {
        let tool = |name: &str| Tool::new(name, "", |_: Call, _: NoArguments| async { Ok(String::new()) });
        let server = Server::builder("s", "1")
            .tool(tool("free"))
            .tool(tool("dear").scopes(["a", "b"]))
            .build()
            .unwrap();
        let needed = |method: &str, params: &str| server.scopes_needed(method, Some(params)).join(" ");
        assert_eq!(needed("tools/call", r#"{"name":"dear"}"#), "a b");
        assert_eq!(needed("tools/call", r#"{"name":"d\u0065ar"}"#), "a b");
        for (method, params) in [
            ("tools/call", r#"{"name":"free"}"#),
            ("tools/call", r#"{"name":"unknown"}"#),
            ("tools/call", r#"{"name":1}"#),
            ("tools/call", "{}"),
            ("tools/list", r#"{"name":"dear"}"#),
        ] {
            assert_eq!(needed(method, params), "", "{method} {params}");
        }
    }

    #[test]
    fn without_a_token_nothing_is_lacking() {
        let needed: [Arc<str>; 2] = ["a".into(), "b".into()];
        let held = |scopes: &[&str]| scopes.iter().map(|scope| Box::from(*scope)).collect::<Vec<Box<str>>>();
        assert!(!lacks(None, &needed));
        assert!(lacks(Some(&held(&["a"])), &needed) && lacks(Some(&[]), &needed));
        assert!(!lacks(Some(&held(&["b", "c", "a"])), &needed) && !lacks(Some(&[]), &[]));
    }
}
