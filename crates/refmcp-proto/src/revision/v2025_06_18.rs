//! 2025-06-18: batches leave; elicitation, structured output, resource links and titles arrive.

use super::rules::{BatchRule, Elicitation, Rules, StructuredOutput};
use super::{Revision, v2025_03_26};

pub(super) const RULES: Rules = Rules {
    revision: Revision::V2025_06_18,
    batches: BatchRule::Refused,
    version_header: true,
    resource_links: true,
    structured_output: StructuredOutput::Object,
    titles: true,
    elicitation: Elicitation::PlainForms,
    ..v2025_03_26::RULES
};
