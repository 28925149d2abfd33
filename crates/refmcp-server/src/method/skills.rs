//! `skills/list`, `skills/get` and `resources/directory/read`.

use std::sync::Arc;

use refmcp_proto::jsonrpc::RpcError;
use refmcp_proto::model::{
    GetSkillParams, GetSkillResult, ListSkillsResult, ReadDirectoryParams, ReadDirectoryResult, Resource,
    Skill,
};

use super::{PreparedCall, pagination, params};
use crate::call::Call;
use crate::catalog::CompiledSkill;
use crate::error::CallError;

pub(super) fn list(call: &Call) -> Result<PreparedCall, CallError> {
    pagination::list(
        call,
        |catalog| &catalog.skill_entries,
        Skill::clone,
        |skills, next_cursor| ListSkillsResult { next_cursor, ..ListSkillsResult::new(skills) }.into(),
    )
}

pub(super) fn get(call: &Call) -> Result<PreparedCall, CallError> {
    let GetSkillParams { uri, .. } = params(call)?;
    let own = call.session().and_then(|session| session.catalog());
    let shared = call.server().catalog();
    let found = own.as_deref().into_iter().chain([&*shared]).find_map(|it| it.skill_entries.get(&uri));
    let skill = found.cloned().ok_or_else(|| RpcError::invalid_params("no skill has this URI"))?;
    let get = async move { Ok(GetSkillResult::new(Skill::clone(&skill)).into()) };
    Ok(PreparedCall::inline(get).about(call, &uri))
}

/// A page of a directory. Its cursors count what was sent of it.
pub(super) fn read_directory(call: &Call) -> Result<PreparedCall, CallError> {
    let ReadDirectoryParams { uri, .. } = params(call)?;
    let size = call.server().settings().page_size;
    let start = pagination::start_in(call, &uri)?;
    let children =
        directory(call, &uri).ok_or_else(|| RpcError::invalid_params("no directory has this URI"))?;
    let rest = children.get(usize::try_from(start).unwrap_or(usize::MAX)..).unwrap_or_default();
    let page = rest.iter().take(size).cloned().collect();
    let next = (rest.len() > size).then(|| start + size as u64);
    let next_cursor = next.map(|next| pagination::cursor_in(call, &uri, next));
    let read =
        async move { Ok(ReadDirectoryResult { next_cursor, ..ReadDirectoryResult::new(page) }.into()) };
    Ok(PreparedCall::inline(read).about(call, &uri))
}

/// What is directly in a directory, of the session's own skills first.
fn directory(call: &Call, uri: &str) -> Option<Vec<Resource>> {
    let own = call.session().and_then(|session| session.catalog());
    let shared = call.server().catalog();
    let catalogs = own.as_deref().into_iter().chain([&*shared]);
    let mut skills = catalogs.flat_map(|catalog| catalog.skills.iter());
    skills.find_map(|skill: &Arc<CompiledSkill>| skill.directory(uri)).map(<[Resource]>::to_vec)
}
