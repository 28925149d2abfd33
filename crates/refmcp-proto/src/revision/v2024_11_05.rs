//! 2024-11-05: the first revision. Tools, resources, prompts, completion, logging, roots and sampling.

use super::Revision;
use super::rules::{
    BadArguments, BatchRule, Elicitation, InputMode, Lifecycle, LogScope, Resumption, Rules,
    StructuredOutput, Tasks, UnreadableId, UrlElicitation,
};
use crate::jsonrpc::code;

pub(super) const RULES: Rules = Rules {
    revision: Revision::V2024_11_05,
    lifecycle: Lifecycle::Handshake,
    batches: BatchRule::Refused,
    input_mode: InputMode::ServerRequest,
    log_scope: LogScope::Session,
    version_header: false,
    resumption: Resumption::ByEventId,
    audio: false,
    resource_links: false,
    structured_output: StructuredOutput::Unknown,
    tool_annotations: false,
    titles: false,
    icons: false,
    progress_message: false,
    completions_capability: false,
    elicitation: Elicitation::Unknown,
    url_elicitation: UrlElicitation::Unknown,
    sampling_tools: false,
    tasks: Tasks::Unknown,
    extensions: false,
    stamped_results: false,
    cache_hints: false,
    changes_by_listening: false,
    resource_not_found: code::RESOURCE_NOT_FOUND,
    bad_arguments: BadArguments::ProtocolError,
    unreadable_id: UnreadableId::Null,
};
