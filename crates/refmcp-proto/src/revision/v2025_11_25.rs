//! 2025-11-25: URL elicitation, richer forms, icons and sampling with tools arrive; bad tool arguments become tool
//! results, so that a model can correct them.

use super::rules::{BadArguments, Elicitation, Resumption, Rules, Tasks, UnreadableId, UrlElicitation};
use super::{Revision, v2025_06_18};

pub(super) const RULES: Rules = Rules {
    revision: Revision::V2025_11_25,
    resumption: Resumption::Polling,
    icons: true,
    elicitation: Elicitation::Forms,
    url_elicitation: UrlElicitation::WithId,
    sampling_tools: true,
    tasks: Tasks::Experimental,
    bad_arguments: BadArguments::ToolResult,
    unreadable_id: UnreadableId::Absent,
    ..v2025_06_18::RULES
};
