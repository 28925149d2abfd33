//! `skills`: what a server has of them, verified before anything of it is shown or saved.

mod approval;
mod folder;
mod pull;

use anyhow::Result;
use refmcp_client::skill::{SkillEntry, SkillEntryError, VerifiedFile};
use refmcp_client::{KnownSkill, SkillError};
use refmcp_proto::revision::Method;
use serde_json::{Value, json};

use super::session::Session;
use crate::args::{ExitError, ExitReason, SkillsCommand, UsageError, usage};
use crate::store::StateFolder;
use crate::store::trust::{Trust, TrustStatus};
use crate::ui::render;
use crate::ui::render::table::Table;
use crate::ui::suggest::unknown;
use crate::ui::text::one_line;

/// Does what is asked about skills.
pub(crate) async fn run(session: &Session, command: &SkillsCommand) -> Result<ExitReason> {
    match command {
        SkillsCommand::List => list(session).await,
        SkillsCommand::Show { skill, file } => show(session, skill, file.as_deref()).await,
        SkillsCommand::Verify { skills } => verify(session, skills).await,
        SkillsCommand::Pull { skill, into } => pull::pull(session, skill, into).await,
    }
}

/// Why there is no skill, or no file of one.
fn failed(session: &Session, method: &Method, error: SkillError) -> anyhow::Error {
    match error {
        SkillError::Request(error) => session.fault(method.name(), &error),
        SkillError::Fault(fault) => ExitError::new(ExitReason::Different, fault.to_string()).into(),
        error => UsageError::new(error.to_string()).into(),
    }
}

/// The skills that the server lists, and the entries that are wrong.
async fn listed(session: &Session) -> Result<(Vec<KnownSkill>, Vec<SkillEntryError>)> {
    let skills = session.client.skills();
    let list = session.budget.spend(skills.list()).await;
    let list = list.map_err(|error| failed(session, &Method::ListSkills, error))?;
    Ok((list.skills, list.refused))
}

/// The skill at a URI, or the one of this name.
async fn find(session: &Session, word: &str) -> Result<KnownSkill> {
    if word.contains("://") {
        let skills = session.client.skills();
        let got = session.budget.spend(skills.get(word)).await;
        return got.map_err(|error| failed(session, &Method::GetSkill, error));
    }
    let (skills, _) = listed(session).await?;
    let names: Vec<&str> = skills.iter().map(|skill| skill.entry().name()).collect();
    let mut found = skills.iter().filter(|skill| skill.entry().name() == word);
    match (found.next(), found.next()) {
        (Some(skill), None) => Ok(skill.clone()),
        (Some(one), Some(other)) => {
            let (one, other) = (one.entry().uri(), other.entry().uri());
            Err(usage!("several skills are called {word}; name one by its URI, such as {one} or {other}")
                .into())
        }
        (None, _) => Err(UsageError::new(unknown("skill", word, &names)).into()),
    }
}

/// What the user has decided about a skill of this server.
fn decided(session: &Session, entry: &SkillEntry) -> Result<TrustStatus> {
    let folder = StateFolder::from_env()?;
    Ok(Trust::load(&folder)?.skill(session.name.key(), entry))
}

/// One word for a decision.
fn approval(verdict: TrustStatus) -> &'static str {
    match verdict {
        TrustStatus::Allowed => "approved",
        TrustStatus::Changed => "changed",
        TrustStatus::Disabled | TrustStatus::Unknown => "none",
    }
}

/// A skill as JSON: its entry, and what was decided.
fn document(entry: &SkillEntry, verdict: TrustStatus) -> Value {
    let mut document = json!(entry.skill());
    document["approval"] = approval(verdict).into();
    document
}

fn fault_document(fault: &SkillEntryError) -> Value {
    json!({ "uri": fault.uri(), "problem": fault.kind(), "message": fault.to_string() })
}

/// `skills list`.
async fn list(session: &Session) -> Result<ExitReason> {
    let (skills, refused) = listed(session).await?;
    let mut table = Table::new(&["URI", "FILES", "SIZE", "APPROVAL", "ABOUT"]);
    let mut documents = Vec::new();
    for skill in &skills {
        let entry = skill.entry();
        let verdict = decided(session, entry)?;
        let (files, size) = match entry.is_dynamic() {
            true => ("dynamic".to_owned(), String::new()),
            false => (entry.files().count().to_string(), render::bytes(entry.size())),
        };
        let about = one_line(entry.description()).into_owned();
        table.row([entry.uri(), &files, &size, approval(verdict), &about]);
        documents.push(document(entry, verdict));
    }
    for fault in &refused {
        session.bars.say(&format!("refmcp: {}\n", one_line(&fault.to_string())));
    }
    let document = json!({
        "skills": documents, "refused": refused.iter().map(fault_document).collect::<Vec<_>>()
    });
    session.printer.show(&document, |view| {
        let text = table.render_or("no skills", view.paint, view.width);
        render::Rendered::of_list(text, skills.is_empty(), view)
    })?;
    Ok(ExitReason::Done)
}

/// `skills show`.
async fn show(session: &Session, word: &str, file: Option<&str>) -> Result<ExitReason> {
    let skill = find(session, word).await?;
    let read = async {
        let loaded = skill.load().await?;
        match file {
            Some(path) => loaded.read(path).await,
            None => Ok(loaded.document().clone()),
        }
    };
    let file = session.budget.spend(read).await;
    let file = file.map_err(|error| failed(session, &Method::ReadResource, error))?;
    let verdict = decided(session, skill.entry())?;
    let mut document = document(skill.entry(), verdict);
    document["target"] = session.name.to_string().into();
    document["file"] = file_document(&file);
    session.remark(&format!("{} of {}, as its server wrote it", one_line(file.uri()), session.name));
    session.printer.show_bytes(&document, Some(file.bytes().to_vec()), |view| match file.text() {
        Some(text) => view.text(text).into_owned(),
        None => format!("{} that are no text\n", render::bytes(file.bytes().len() as u64)),
    })?;
    Ok(ExitReason::Done)
}

/// A verified file as JSON; bytes that are no text are left out.
fn file_document(file: &VerifiedFile) -> Value {
    json!({
        "uri": file.uri(), "path": file.path(), "size": file.bytes().len(), "digestVerified": file.has_digest(),
        "text": file.text()
    })
}

/// `skills verify`.
async fn verify(session: &Session, words: &[String]) -> Result<ExitReason> {
    let (mut skills, mut faults) = (Vec::new(), Vec::new());
    if words.is_empty() {
        (skills, faults) = listed(session).await?;
    }
    for word in words {
        skills.push(find(session, word).await?);
    }
    let (mut text, mut documents) = (String::new(), Vec::new());
    for skill in &skills {
        let outcome = session.budget.spend(verify_files(skill)).await;
        let entry = skill.entry();
        match outcome {
            Ok(files) => {
                let how = match entry.is_dynamic() {
                    true => "front matter verified; dynamic, so no digest holds".to_owned(),
                    false => format!("verified: {}, {}", count(files), render::bytes(entry.size())),
                };
                text.push_str(&format!("{}  {how}\n", one_line(entry.uri())));
                documents.push(json!({ "uri": entry.uri(), "verified": true, "files": files }));
            }
            Err(SkillError::Fault(fault)) => faults.push(fault),
            Err(error) => return Err(failed(session, &Method::ReadResource, error)),
        }
    }
    for fault in &faults {
        text.push_str(&format!(
            "{}  NOT VERIFIED: {}\n",
            one_line(fault.uri()),
            one_line(&fault.to_string())
        ));
        let mut document = fault_document(fault);
        document["verified"] = false.into();
        documents.push(document);
    }
    session.printer.show(&json!({ "skills": documents }), |view| {
        let is_empty = text.is_empty();
        let text = if is_empty { "no skills\n".to_owned() } else { text };
        render::Rendered::of_list(text, is_empty, view)
    })?;
    Ok(if faults.is_empty() { ExitReason::Done } else { ExitReason::Different })
}

/// So many files.
fn count(files: usize) -> String {
    if files == 1 { "1 file".to_owned() } else { format!("{files} files") }
}

/// Reads every file of a skill; how many there are. Of a dynamic one, its `SKILL.md` is all that is known.
async fn verify_files(skill: &KnownSkill) -> Result<usize, SkillError> {
    let loaded = skill.load().await?;
    let others = skill.entry().files().filter(|(uri, ..)| *uri != skill.entry().uri());
    let mut files = 1;
    for (_, path, _) in others {
        loaded.read(path).await?;
        files += 1;
    }
    Ok(files)
}
