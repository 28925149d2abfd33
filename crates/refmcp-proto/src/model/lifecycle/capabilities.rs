//! What each side declares that it can do.

use crate::model::JsonObject;

json_object! {
    /// What a client can do for a server.
    pub struct ClientCapabilities {
        /// Experiments outside the protocol, by name.
        experimental?: JsonObject,
        /// The client can list its roots.
        roots?: RootsCapability,
        /// The client can sample from a model.
        sampling?: SamplingCapability,
        /// The client can ask its user.
        elicitation?: ElicitationCapability,
        /// Extensions of the protocol, by identifier, with their settings.
        extensions?: JsonObject,
    }
}

impl ClientCapabilities {
    /// Whether the user can be asked by a form; an empty declaration means forms too.
    pub fn elicits_forms(&self) -> bool {
        self.elicitation.as_ref().is_some_and(|modes| modes.form.is_some() || modes.url.is_none())
    }

    /// Whether the user can be sent to a URL.
    pub fn elicits_urls(&self) -> bool {
        self.elicitation.as_ref().is_some_and(|modes| modes.url.is_some())
    }

    /// Whether the client samples.
    pub fn samples(&self) -> bool {
        self.sampling.is_some()
    }

    /// Whether the client samples with tools at the model's hand.
    pub fn samples_with_tools(&self) -> bool {
        self.sampling.as_ref().is_some_and(|sampling| sampling.tools.is_some())
    }

    /// Whether the client lists roots.
    pub fn has_roots(&self) -> bool {
        self.roots.is_some()
    }
}

json_object! {
    /// How a client handles roots.
    pub struct RootsCapability {
        /// The client tells when its roots change (older revisions only).
        list_changed?: bool,
    }

    /// How a client samples.
    pub struct SamplingCapability {
        /// Tools may be offered to the model.
        tools?: JsonObject,
        /// Context of servers may be included.
        context?: JsonObject,
    }

    /// How a client asks its user.
    pub struct ElicitationCapability {
        /// By a form.
        form?: JsonObject,
        /// By opening a URL.
        url?: JsonObject,
    }

    /// What a server offers.
    pub struct ServerCapabilities {
        /// Experiments outside the protocol, by name.
        experimental?: JsonObject,
        /// The server sends log messages.
        logging?: JsonObject,
        /// The server completes arguments.
        completions?: JsonObject,
        /// The server has prompts.
        prompts?: PromptsCapability,
        /// The server has resources.
        resources?: ResourcesCapability,
        /// The server has tools.
        tools?: ToolsCapability,
        /// Extensions of the protocol, by identifier, with their settings.
        extensions?: JsonObject,
    }

    /// How a server offers prompts.
    pub struct PromptsCapability {
        /// The server tells when the list changes.
        list_changed?: bool,
    }

    /// How a server offers resources.
    pub struct ResourcesCapability {
        /// The server tells when a resource a client watches is updated.
        subscribe?: bool,
        /// The server tells when the list changes.
        list_changed?: bool,
    }

    /// How a server offers tools.
    pub struct ToolsCapability {
        /// The server tells when the list changes.
        list_changed?: bool,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_empty_elicitation_means_forms() {
        let cases = [
            (json!({}), false, false),
            (json!({"elicitation": null}), false, false),
            (json!({"elicitation": {}}), true, false),
            (json!({"elicitation": {"form": {}}}), true, false),
            (json!({"elicitation": {"url": {}}}), false, true),
            (json!({"elicitation": {"form": {}, "url": {}}}), true, true),
        ];
        for (json, forms, urls) in cases {
            let capabilities: ClientCapabilities = serde_json::from_value(json.clone()).unwrap();
            assert_eq!((capabilities.elicits_forms(), capabilities.elicits_urls()), (forms, urls), "{json}");
        }
    }

    #[test]
    fn unknown_capabilities_survive() {
        let json = json!({"tasks": {"list": {}}, "roots": {"listChanged": true, "x": 1}});
        let capabilities: ClientCapabilities = serde_json::from_value(json.clone()).unwrap();
        assert_eq!(serde_json::to_value(&capabilities).unwrap(), json);
    }
}
