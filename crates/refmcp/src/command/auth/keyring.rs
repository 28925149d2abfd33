//! `refmcp auth keyring`: whether the file of tokens is sealed with a key that the system's keyring keeps.

use anyhow::Result;
use serde_json::json;

use super::tokens;
use crate::args::{ExitReason, KeyringAction, SharedOptions, UsageError};
use crate::store::tokens::keyring::CredentialHelper;
use crate::ui::output::show;

pub(super) async fn keyring(action: KeyringAction, shared: &SharedOptions) -> Result<ExitReason> {
    let tokens = tokens()?;
    let file = tokens.file.path();
    let wanted = match action {
        KeyringAction::Show => None,
        KeyringAction::Off => Some(None),
        KeyringAction::On { helper: None } => Some(Some(CredentialHelper::of_this_system())),
        KeyringAction::On { helper: Some(name) } => {
            Some(Some(CredentialHelper::try_from(name).map_err(|fault| UsageError::new(fault.to_string()))?))
        }
    };
    // The user may have to unlock the keyring.
    let helper = tokio::task::spawn_blocking(move || {
        match wanted {
            Some(wanted) if tokens.file.helper()? != wanted => tokens.file.seal(wanted.as_ref())?,
            // Whether the key is still there is worth knowing.
            Some(_) => drop(tokens.load()?),
            None => {}
        }
        tokens.file.helper()
    });
    let program = helper.await??.map(|helper| helper.program());
    let result = json!({ "file": file, "sealed": program.is_some(), "helper": program });
    show(shared.output, &result, || {
        let file = file.display();
        match &program {
            Some(program) => format!("{file} is sealed with a key that {program} keeps\n"),
            None => format!("{file} is not sealed: only you can read it\n"),
        }
    })?;
    Ok(ExitReason::Done)
}
