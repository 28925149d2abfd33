//! The verdict of an audit on the client, as the resource `refmcp://verdict` and in the tool `about_me`.

use std::fmt;
use std::sync::Arc;

use refmcp_server::model::{Annotations, JsonObject, ResourceContents, Role};
use refmcp_server::{Call, Resource};
use serde_json::{Value, json};

pub(crate) const URI: &str = "refmcp://verdict";

/// Knows the verdict on the client of a call, as a JSON object.
#[derive(Clone)]
pub struct VerdictSource(Arc<VerdictFn>);

type VerdictFn = dyn Fn(&Call) -> Option<JsonObject> + Send + Sync;

impl VerdictSource {
    /// A source that asks this function; it knows none where the client is not judged.
    pub fn new(verdict: impl Fn(&Call) -> Option<JsonObject> + Send + Sync + 'static) -> Self {
        Self(Arc::new(verdict))
    }

    pub(crate) fn verdict(&self, call: &Call) -> Option<JsonObject> {
        (self.0)(call)
    }
}

impl fmt::Debug for VerdictSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("VerdictSource")
    }
}

/// The resource with the verdict on the client that reads it.
pub(crate) fn resource(source: Option<VerdictSource>) -> Resource {
    let resource = Resource::new(URI, "verdict", move |call: Call| {
        let text = format!("{:#}\n", verdict(source.as_ref(), &call));
        async move { Ok(ResourceContents::text(URI, text).mime_type("application/json")) }
    });
    let annotations =
        Annotations { audience: Some(vec![Role::User]), priority: Some(0.4), ..Annotations::default() };
    resource
        .title("Verdict")
        .description(
            "Which rules of the specification the client that reads this kept, broke and never exercised",
        )
        .mime_type("application/json")
        .annotations(annotations)
}

fn verdict(source: Option<&VerdictSource>, call: &Call) -> Value {
    let why = match source.map(|source| source.verdict(call)) {
        Some(Some(mut verdict)) => {
            verdict.insert("judged".to_owned(), true.into());
            return verdict.into();
        }
        Some(None) => {
            "nothing of this conversation was judged: much passed at a time, or it is not over a connection that is watched"
        }
        None => "this server judges no clients",
    };
    json!({ "judged": false, "why": why })
}
