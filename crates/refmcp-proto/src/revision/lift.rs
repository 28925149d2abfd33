//! From the shape a peer speaks to the model's: what its revision cannot mean is taken out.

use crate::model::ClientCapabilities;
use crate::revision::{Elicitation, Rules, UrlElicitation};

/// What a client can do, read by the rules of its revision: a capability that the revision does not know says nothing.
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
    if !rules.extensions {
        capabilities.extensions = None;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::revision::Revision;

    #[test]
    fn unknown_capabilities_say_nothing() {
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
}
