//! Rules about what servers ask of clients: roots, sampling and elicitation, and rounds of input without a session (MRTR).

mod elicitation;
mod input;
pub(super) mod input_rounds;
mod roots;
mod sampling;

use refmcp_proto::revision::{Elicitation as ElicitationKind, Revision};
use refmcp_proto::rule::{self, Rule};

use elicitation::Elicitation;
use input::{Input, Inputs};

use crate::auditor::checks::{Check, Context};
use crate::auditor::message::Message;
use crate::verdict::Role;

pub(super) static RULES: &[&Rule] = &[
    &rule::ROOT_01,
    &rule::ROOT_02,
    &rule::ROOT_03,
    &rule::SAMP_04,
    &rule::SAMP_05,
    &rule::SAMP_06,
    &rule::SAMP_09,
    &rule::SAMP_11,
    &rule::ELIC_01,
    &rule::ELIC_02,
    &rule::ELIC_04,
    &rule::ELIC_05,
    &rule::ELIC_06,
    &rule::ELIC_08,
    &rule::ELIC_13,
    &rule::ELIC_14,
    &rule::ELIC_16,
];

#[derive(Debug, Default)]
pub(super) struct ClientFeatures {
    inputs: Inputs,
    elicitation: Elicitation,
}

impl Check for ClientFeatures {
    fn message(&mut self, message: &Message<'_>, context: &mut Context<'_>) {
        if let Some(("notifications/roots/list_changed", _)) = message.notification()
            && message.from == Role::Client
        {
            roots::changed(context);
        }
        let Some(rules) = message.revision.map(Revision::rules) else { return };
        let elicits = rules.elicitation != ElicitationKind::Unknown;
        if elicits {
            self.elicitation.message(message, rules, context);
        }
        for input in self.inputs.see(message, context.state) {
            match input {
                Input::Wanted { method, params, capabilities } => match &*method {
                    "sampling/createMessage" => {
                        sampling::wanted(&params, capabilities.as_ref(), rules, context);
                    }
                    "elicitation/create" if elicits => {
                        self.elicitation.wanted(&params, capabilities.as_ref(), rules, context);
                    }
                    _ => {}
                },
                Input::Given { method, params, result } => match &*method {
                    "roots/list" => roots::given(&result, context),
                    "sampling/createMessage" => sampling::given(&result, rules, context),
                    "elicitation/create" if elicits => elicitation::given(&params, &result, context),
                    _ => {}
                },
            }
        }
    }
}
