//! The user's approval of a skill, which holds for exactly its files as they are.

use anyhow::Result;
use refmcp_client::skill::{Approval, SkillEntry};

use super::decided;
use crate::args::{ExitError, ExitReason, UsageError, usage};
use crate::command::client::Session;
use crate::store::StateFolder;
use crate::store::trust::{self, TrustStatus};
use crate::ui::render;
use crate::ui::text::one_line;

/// Sees to it that the user has approved a skill; nothing of it was read before.
pub(super) async fn approved(session: &Session, entry: &SkillEntry) -> Result<()> {
    let Some(approval) = Approval::of(entry) else {
        let what = "is dynamic: its files change by themselves, so no approval would hold for what is saved";
        return Err(usage!("{} {what}", entry.uri()).into());
    };
    let status = decided(session, entry)?;
    if status == TrustStatus::Allowed {
        return Ok(());
    }
    if !session.shared.yes {
        ask(session, entry, status == TrustStatus::Changed).await?;
    }
    trust::approve_skill(&StateFolder::from_env()?, session.name.key(), approval)
}

async fn ask(session: &Session, entry: &SkillEntry, is_changed: bool) -> Result<()> {
    let heading = format!("{} offers a skill, {}:", session.name, one_line(entry.uri()));
    let about = one_line(entry.description()).into_owned();
    let mut lines: Vec<String> =
        entry.files().map(|(_, path, digest)| format!("{}  {digest}", one_line(path))).collect();
    lines.push(format!("{} together", render::bytes(entry.size())));
    let answer = session.person.ask(move |terminal| {
        terminal.say_strong(&heading)?;
        terminal.say(&format!("  {about}"))?;
        for line in &lines {
            terminal.say_faint(&format!("  {line}"))?;
        }
        if is_changed {
            terminal.warn("  careful: its files have changed since you approved it")?;
        }
        terminal.say("  Its author wrote this; the text is for a model, and may ask it to run things.")?;
        terminal.letter("Approve it? [yes, No]", &["yes", "no"], 'n')
    });
    match answer.await {
        Some(Ok('y')) => Ok(()),
        Some(_) => {
            Err(ExitError::new(ExitReason::Failed, "it was not approved, and nothing was read").into())
        }
        None => {
            let why = if is_changed { "has changed since it was approved" } else { "is not approved" };
            let what =
                format!("{} {why}, and the user cannot be asked: give --yes to approve it", entry.uri());
            Err(UsageError::new(what).into())
        }
    }
}
