//! 2025-03-26: batches, audio, tool annotations, progress messages and the completions capability arrive.

use super::rules::{BatchRule, Rules};
use super::{Revision, v2024_11_05};

pub(super) const RULES: Rules = Rules {
    revision: Revision::V2025_03_26,
    batches: BatchRule::Accepted,
    audio: true,
    tool_annotations: true,
    progress_message: true,
    completions_capability: true,
    ..v2024_11_05::RULES
};
