//! `skills pull`: approved, then read and verified as a whole, then saved.

use std::path::Path;
use std::time::SystemTime;

use anyhow::Result;
use refmcp_client::KnownSkill;
use refmcp_client::SkillError;
use refmcp_client::skill::VerifiedFile;
use refmcp_proto::revision::Method;
use serde_json::{Value, json};

use super::{approval, count, failed, find, folder};
use crate::args::ExitReason;
use crate::command::client::Session;
use crate::store::rfc3339;

pub(super) async fn pull(session: &Session, word: &str, into: &Path) -> Result<ExitReason> {
    let skill = find(session, word).await?;
    let entry = skill.entry();
    // What cannot be saved is not asked about.
    let target = folder::NewFolder::new(into, entry.name())?;
    folder::check_paths(entry.files().map(|(_, path, _)| path))?;
    approval::approved(session, entry).await?;
    let files = session.budget.spend(read(&skill)).await;
    let files = files.map_err(|error| failed(session, &Method::ReadResource, error))?;
    let saved = target.save(&files, &origin(session, &skill))?;
    let document = json!({
        "uri": entry.uri(), "folder": saved.to_string_lossy(), "files": files.len(), "size": entry.size()
    });
    session.printer.show(&document, |_| {
        let (files, folder) = (count(files.len()), saved.display());
        format!("saved {files} in {folder}, verified; none is executable\n")
    })?;
    Ok(ExitReason::Done)
}

/// Every file, verified.
async fn read(skill: &KnownSkill) -> Result<Vec<VerifiedFile>, SkillError> {
    let loaded = skill.load().await?;
    let mut files = vec![loaded.document().clone()];
    for (uri, path, _) in skill.entry().files() {
        if uri != skill.entry().uri() {
            files.push(loaded.read(path).await?);
        }
    }
    Ok(files)
}

/// Where the skill comes from: a folder does not say so by itself.
fn origin(session: &Session, skill: &KnownSkill) -> Value {
    json!({
        "server": session.name.key(),
        "uri": skill.entry().uri(),
        "resources": skill.entry().skill().resources,
        "pulled": rfc3339(SystemTime::now()),
    })
}
