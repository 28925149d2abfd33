//! The client of a server engine: its revision, its capabilities, its name.

use serde::{Deserialize, Serialize};

use crate::engine::CallFailure;
use crate::model::{ClientCapabilities, ElicitParams, Implementation, InputRequest, SamplingCapability};
use crate::revision::{Elicitation, Revision, Rules, UrlElicitation};

/// A client: its revision, what it can do, what it calls itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Peer {
    /// The revision it speaks.
    pub revision: Revision,
    /// The capabilities that it declared.
    pub capabilities: ClientCapabilities,
    /// Its name and version; never a reason to trust it.
    pub info: Option<Implementation>,
}

impl Peer {
    /// The rules of its revision.
    pub fn rules(&self) -> &'static Rules {
        self.revision.rules()
    }

    /// Whether it supports this input request; if not, the capability that it would have to declare.
    pub fn check_support(&self, request: &InputRequest) -> Result<(), CallFailure> {
        let (able, needs, what) = match request {
            InputRequest::Roots => {
                (self.capabilities.has_roots(), needs(|all| all.roots = Some(Default::default())), "roots")
            }
            InputRequest::Sample(params) if params.tools.is_some() || params.tool_choice.is_some() => (
                self.capabilities.samples_with_tools() && self.rules().sampling_tools,
                needs(|all| {
                    let tools = Some(Default::default());
                    all.sampling = Some(SamplingCapability { tools, ..Default::default() });
                }),
                "sampling with tools",
            ),
            InputRequest::Sample(_) => (
                self.capabilities.samples(),
                needs(|all| all.sampling = Some(Default::default())),
                "sampling",
            ),
            InputRequest::Elicit(ElicitParams::Form(_)) => (
                self.capabilities.elicits_forms() && self.rules().elicitation != Elicitation::Unknown,
                needs(|all| all.elicitation.get_or_insert_default().form = Some(Default::default())),
                "elicitation",
            ),
            InputRequest::Elicit(ElicitParams::Url(_)) => (
                self.capabilities.elicits_urls() && self.rules().url_elicitation != UrlElicitation::Unknown,
                needs(|all| all.elicitation.get_or_insert_default().url = Some(Default::default())),
                "URL elicitation",
            ),
        };
        if able {
            Ok(())
        } else {
            Err(CallFailure::MissingCapability { needs: Box::new(needs), what: what.into() })
        }
    }
}

fn needs(declare: impl FnOnce(&mut ClientCapabilities)) -> ClientCapabilities {
    let mut capabilities = ClientCapabilities::default();
    declare(&mut capabilities);
    capabilities
}
