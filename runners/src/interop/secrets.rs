//! The secrets of logins of foreign clients, searched for in the logs of our server.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::leaks::Secrets;

/// The variable that names the file to which a script writes the secrets it sees, one a line.
pub(super) const VARIABLE: &str = "REFMCP_SECRETS";

/// What every login brings: a state, a code, a verifier, a token; and there are several.
const FEWEST: usize = 12;

/// The file to which a script writes them; it is deleted afterwards.
pub(super) struct RecordedSecrets(PathBuf);

impl RecordedSecrets {
    pub(super) fn new(path: PathBuf) -> Result<Self> {
        fs::write(&path, "").with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// The leaks in these logs, of the recorded secrets and of one that is known beforehand.
    pub(super) fn problems(&self, known: &str, logs: &[PathBuf]) -> Result<Vec<String>> {
        let mut secrets = Secrets::default();
        secrets.add(known);
        let recorded = read(&self.0)?;
        recorded.lines().for_each(|secret| secrets.add(secret));
        ensure!(secrets.len() >= FEWEST, "the script has written down {secrets:?} only");
        let mut problems = Vec::new();
        for path in logs {
            let log = read(path)?;
            ensure!(log.contains(" DEBUG "), "{} has not all that can be logged", path.display());
            problems.extend(secrets.leak(&log).map(|leak| format!("{}: {leak}", path.display())));
        }
        Ok(problems)
    }
}

impl Drop for RecordedSecrets {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0); // a file that cannot be removed was reported before
    }
}

fn read(path: &Path) -> Result<String> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_noted_is_found_in_a_log() {
        let folder = std::env::temp_dir().join(format!("xtask-secrets-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (good, bad, short) = (folder.join("good"), folder.join("bad"), folder.join("short"));
        fs::write(&good, "0 DEBUG nothing is told\n").unwrap();
        fs::write(&bad, "0 DEBUG they said secret-7\n").unwrap();
        fs::write(&short, "0 WARN nothing is told\n").unwrap();
        let recorded = RecordedSecrets::new(folder.join("recorded")).unwrap();
        let few = recorded.problems("known", std::slice::from_ref(&good));
        let lines: Vec<String> = (0..FEWEST).map(|number| format!("secret-{number}")).collect();
        fs::write(recorded.path(), lines.join("\n")).unwrap();
        let found = recorded.problems("known", &[good.clone(), bad]);
        let known = recorded.problems("nothing", &[good]);
        let quiet = recorded.problems("known", &[short]);
        drop(recorded);
        let removed = !folder.join("recorded").exists();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(few.unwrap_err().to_string(), "the script has written down 1 secrets only");
        let found = found.unwrap();
        assert!(found.len() == 1 && found[0].contains("»secret-7"), "{found:?}");
        assert_eq!(known.unwrap().len(), 1);
        assert!(quiet.unwrap_err().to_string().contains("all that can be logged"));
        assert!(removed, "what was recorded must not stay");
    }
}
