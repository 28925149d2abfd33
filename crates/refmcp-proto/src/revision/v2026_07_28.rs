//! 2026-07-28: no handshake and no sessions. Each request describes its client, results require input, changes are
//! notified on `subscriptions/listen` streams, results say how long they may be cached.

use super::rules::{
    InputMode, Lifecycle, LogScope, Resumption, Rules, StructuredOutput, Tasks, UrlElicitation,
};
use super::{Revision, v2025_11_25};
use crate::jsonrpc::code;

pub(super) const RULES: Rules = Rules {
    revision: Revision::V2026_07_28,
    lifecycle: Lifecycle::PerRequest,
    input_mode: InputMode::InputRequired,
    log_scope: LogScope::Request,
    resumption: Resumption::Never,
    structured_output: StructuredOutput::Any,
    url_elicitation: UrlElicitation::Plain,
    tasks: Tasks::Extension,
    extensions: true,
    stamped_results: true,
    cache_hints: true,
    changes_by_listening: true,
    resource_not_found: code::INVALID_PARAMS,
    ..v2025_11_25::RULES
};
