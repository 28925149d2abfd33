//! Capabilities and implementations, without what a revision does not have.

use crate::model::{
    ClientCapabilities, Implementation, JsonObject, SKILLS_EXTENSION, ServerCapabilities, UI_EXTENSION,
};
use crate::revision::{Elicitation, Rules, Tasks, UrlElicitation};

/// The capabilities of a server in this revision.
pub fn capabilities(rules: &Rules, offered: &ServerCapabilities) -> ServerCapabilities {
    let mut capabilities = offered.clone();
    if !rules.completions_capability {
        capabilities.completions = None;
    }
    if rules.tasks != Tasks::Experimental {
        capabilities.tasks = None;
    }
    // Capabilities beyond the protocol are members of `extensions`, or of the object itself where there is none.
    if rules.extensions {
        capabilities.extra.clear();
    }
    extensions(rules, &mut capabilities.extensions);
    capabilities
}

/// Extensions that are declared in each revision: the objects of the older ones are open, and both sides look for them there.
const OF_EVERY_REVISION: [&str; 2] = [SKILLS_EXTENSION, UI_EXTENSION];

/// Removes the extensions that are not declared in this revision.
pub fn extensions(rules: &Rules, extensions: &mut Option<JsonObject>) {
    if rules.extensions {
        return;
    }
    if let Some(declared) = extensions {
        declared.retain(|id, _| OF_EVERY_REVISION.contains(&id.as_str()));
    }
    extensions.take_if(|declared| declared.is_empty());
}

/// The description of an implementation in this revision.
pub fn implementation(rules: &Rules, implementation: &mut Implementation) {
    if !rules.titles {
        implementation.title = None;
    }
    if !rules.icons {
        implementation.icons = None;
        implementation.description = None;
        implementation.website_url = None;
    }
}

/// Removes the capabilities of a client that its revision does not have.
pub fn client_capabilities(rules: &Rules, capabilities: &mut ClientCapabilities) {
    if rules.elicitation == Elicitation::Unknown {
        capabilities.elicitation = None;
    }
    if let Some(elicitation) = &mut capabilities.elicitation
        && rules.url_elicitation == UrlElicitation::Unknown
    {
        elicitation.url = None;
    }
    if let Some(sampling) = &mut capabilities.sampling
        && !rules.sampling_tools
    {
        sampling.tools = None;
        sampling.context = None;
    }
    if rules.tasks != Tasks::Experimental {
        capabilities.tasks = None;
    }
    extensions(rules, &mut capabilities.extensions);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::revision::Revision;

    #[test]
    fn skills_are_declared_in_every_revision() {
        let declared = json!({ "extensions": { SKILLS_EXTENSION: { "directoryRead": true }, "a/b": {} } });
        let offered: ServerCapabilities = serde_json::from_value(declared.clone()).unwrap();
        for revision in Revision::ALL {
            let seen = serde_json::to_value(capabilities(revision.rules(), &offered)).unwrap();
            let expected = match revision.rules().extensions {
                true => declared.clone(),
                false => json!({ "extensions": { SKILLS_EXTENSION: { "directoryRead": true } } }),
            };
            assert_eq!(seen, expected, "{revision}");
        }
    }

    #[test]
    fn capabilities_that_a_revision_lacks_are_removed() {
        let declared = json!({
            "sampling": {"tools": {}}, "elicitation": {"form": {}, "url": {}}, "extensions": {"a/b": {}}
        });
        let read = |revision: Revision| {
            let mut capabilities: ClientCapabilities = serde_json::from_value(declared.clone()).unwrap();
            client_capabilities(revision.rules(), &mut capabilities);
            serde_json::to_value(capabilities).unwrap()
        };
        assert_eq!(read(Revision::V2024_11_05), json!({"sampling": {}}));
        assert_eq!(read(Revision::V2025_06_18), json!({"sampling": {}, "elicitation": {"form": {}}}));
        assert_eq!(read(Revision::V2026_07_28), declared);
    }

    #[test]
    fn apps_are_declared_in_every_revision() {
        let declared = json!({ "extensions": { "a/b": {}, UI_EXTENSION: {} } });
        for revision in Revision::ALL.into_iter().filter(|revision| !revision.rules().extensions) {
            let kept = json!({ "extensions": { UI_EXTENSION: {} } });
            let mut client: ClientCapabilities = serde_json::from_value(declared.clone()).unwrap();
            client_capabilities(revision.rules(), &mut client);
            assert_eq!(serde_json::to_value(client).unwrap(), kept);
            let server = serde_json::from_value(declared.clone()).unwrap();
            assert_eq!(serde_json::to_value(capabilities(revision.rules(), &server)).unwrap(), kept);
        }
    }
}
