//! Which configured servers may be started, and which tools may be called, without asking.

use std::fmt;
use std::path::Path;
use std::time::SystemTime;

use anyhow::{Context, Result, bail};
use refmcp_client::redact;
use refmcp_client::skill::{Approval, SkillEntry};
use serde::{Deserialize, Serialize};

use super::folder::{StateFolder, read_bounded};
use super::timestamp::rfc3339;
use crate::args::sha256_hex;

/// The file of decisions.
const FILE: &str = "trust.json";

/// Decisions that are kept.
const MAX_DECISIONS: usize = 10_000;

/// Everything that has been decided.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Trust {
    pub(crate) servers: Vec<ServerEntry>,
    pub(crate) tools: Vec<ToolEntry>,
    #[serde(default)]
    pub(crate) skills: Vec<SkillApproval>,
}

/// A decision about a server.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ServerEntry {
    #[serde(flatten)]
    pub(crate) server: ServerIdentity,
    pub(crate) decision: Decision,
    pub(crate) time: String,
}

/// A decision about a tool.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ToolEntry {
    /// The server, as it is shown.
    pub(crate) target: String,
    pub(crate) tool: String,
    pub(crate) decision: Decision,
    pub(crate) time: String,
}

/// The approval of a skill.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SkillApproval {
    /// The server, as it is shown.
    pub(crate) target: String,
    #[serde(flatten)]
    pub(crate) approval: Approval,
    pub(crate) time: String,
}

/// A server that is started by a command, or that values of our environment are sent to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ServerIdentity {
    /// The program and all of its arguments, without the secrets in them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    command: Vec<String>,
    /// The SHA-256 of the whole command, where secrets are left out of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    command_sha256: Option<String>,
    /// The file that names the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) source: Option<Source>,
    /// The path of the program that is started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    program: Option<String>,
    /// The directory that it is started in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    directory: Option<String>,
    /// The file with its variables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    env_file: Option<Source>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sends: Option<SentVariables>,
}

/// Values of our environment that are sent to a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SentVariables {
    /// The origin of the server.
    pub(crate) to: String,
    /// The names of the variables.
    pub(crate) variables: Vec<String>,
}

/// A configuration file as it was when something was decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Source {
    /// Its full path.
    pub(crate) file: String,
    /// The SHA-256 of its content, in hexadecimal digits.
    pub(crate) sha256: String,
}

impl ServerIdentity {
    /// The server that this command of a file starts, or the same command typed.
    pub(crate) fn new(command: &[String], source: Option<Source>) -> Self {
        let shown = redact::words(command);
        // Words cannot have a NUL in them, so no two commands are the same text.
        let command_sha256 = (shown != command).then(|| sha256_hex(command.join("\0").as_bytes()));
        let (program, directory, env_file, sends) = (None, None, None, None);
        Self { command: shown, command_sha256, source, program, directory, env_file, sends }
    }

    /// The server that is started from this program, directory and file of variables.
    pub(crate) fn started(self, program: &str, directory: Option<String>, env_file: Option<Source>) -> Self {
        Self { program: Some(program.to_owned()), directory, env_file, ..self }
    }

    /// The server that a file has variables sent to.
    pub(crate) fn sending(sent: SentVariables, source: Source) -> Self {
        Self { sends: Some(sent), ..Self::new(&[], Some(source)) }
    }

    /// The same, without secrets that an earlier version has written.
    fn redacted(self) -> Self {
        if self.command_sha256.is_some() {
            return self;
        }
        let Self { command, command_sha256, .. } = Self::new(&self.command, None);
        Self { command, command_sha256, ..self }
    }

    /// Whether the files, the program and its directory are those of another decision.
    fn is_unchanged_since(&self, earlier: &Self) -> bool {
        self.source == earlier.source
            && self.env_file == earlier.env_file
            && self.program == earlier.program
            && self.directory == earlier.directory
    }

    /// The same with the files as they are now. A file that cannot be read any more is none.
    fn now(&self) -> Self {
        let now = |source: &Option<Source>| {
            source.as_ref().and_then(|source| Source::read(Path::new(&source.file)).ok())
        };
        Self { source: now(&self.source), env_file: now(&self.env_file), ..self.clone() }
    }
}

/// The command, or what is sent where, as it may be shown.
impl fmt::Display for ServerIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.sends {
            Some(SentVariables { to, variables }) => write!(f, "{} to {to}", variables.join(", ")),
            None => f.write_str(&redact::joined(&self.command)),
        }
    }
}

impl ServerEntry {
    /// What follows from the decision with the configuration file as it is now. A file that cannot be read any more is
    /// not the one that was allowed.
    pub(crate) fn status(&self) -> TrustStatus {
        self.status_for(&self.server.now())
    }

    fn status_for(&self, server: &ServerIdentity) -> TrustStatus {
        match self.decision {
            Decision::Disabled => TrustStatus::Disabled,
            Decision::Allowed if server.is_unchanged_since(&self.server) => TrustStatus::Allowed,
            Decision::Allowed => TrustStatus::Changed,
        }
    }
}

impl Source {
    /// The file as it was read.
    pub(crate) fn of(path: &Path, sha256: &str) -> Result<Self> {
        let full = path.canonicalize().with_context(|| format!("cannot find {}", path.display()))?;
        Ok(Self { file: full.to_string_lossy().into_owned(), sha256: sha256.to_owned() })
    }

    /// The file as it is now.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let full = path.canonicalize().with_context(|| format!("cannot find {}", path.display()))?;
        let content = read_bounded(&full)?.with_context(|| format!("cannot find {}", path.display()))?;
        Ok(Self { file: full.to_string_lossy().into_owned(), sha256: sha256_hex(&content) })
    }
}

/// What was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Decision {
    /// It is not asked about.
    Allowed,
    /// It is never done.
    Disabled,
}

/// What follows from the decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TrustStatus {
    /// Do it without asking.
    Allowed,
    /// Do not do it.
    Disabled,
    /// Ask.
    Unknown,
    /// Ask, and say that a file or the program has changed since it was allowed.
    Changed,
}

/// What a decision is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Subject {
    /// Starting a server.
    Server(ServerIdentity),
    /// Calling a tool.
    Tool {
        /// The server, as it is shown.
        target: String,
        tool: String,
    },
    /// Using a skill.
    Skill {
        /// The server, as it is shown.
        target: String,
        uri: String,
    },
}

impl Trust {
    /// What has been decided so far.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is not what was written: nothing is allowed then, and nothing overwritten.
    pub(crate) fn load(folder: &StateFolder) -> Result<Self> {
        let Some(content) = folder.read(FILE)? else { return Ok(Self::default()) };
        let mut trust: Self = serde_json::from_slice(&content).with_context(|| {
            format!("{} is damaged; remove it to be asked again", folder.file(FILE).display())
        })?;
        let redacted = |entry: ServerEntry| ServerEntry { server: entry.server.redacted(), ..entry };
        trust.servers = trust.servers.into_iter().map(redacted).collect();
        Ok(trust)
    }

    /// Whether a server may be started.
    pub(crate) fn server(&self, server: &ServerIdentity) -> TrustStatus {
        let entry = self.servers.iter().find(|entry| is_same(&entry.server, server));
        entry.map_or(TrustStatus::Unknown, |entry| entry.status_for(server))
    }

    /// Whether a tool may be called.
    pub(crate) fn tool(&self, target: &str, tool: &str) -> TrustStatus {
        let entry = self.tools.iter().find(|entry| entry.target == target && entry.tool == tool);
        entry.map_or(TrustStatus::Unknown, |entry| match entry.decision {
            Decision::Allowed => TrustStatus::Allowed,
            Decision::Disabled => TrustStatus::Disabled,
        })
    }

    /// Whether a skill is approved as it is now.
    pub(crate) fn skill(&self, target: &str, skill: &SkillEntry) -> TrustStatus {
        let entry =
            self.skills.iter().find(|entry| entry.target == target && entry.approval.uri() == skill.uri());
        entry.map_or(TrustStatus::Unknown, |entry| match entry.approval.covers(skill) {
            true => TrustStatus::Allowed,
            false => TrustStatus::Changed,
        })
    }

    fn len(&self) -> usize {
        self.servers.len() + self.tools.len() + self.skills.len()
    }

    /// Forgets what was decided; whether there was anything.
    fn forget(&mut self, subject: &Subject) -> bool {
        let before = self.len();
        match subject {
            Subject::Server(server) => self.servers.retain(|entry| !is_same(&entry.server, server)),
            Subject::Tool { target, tool } => {
                self.tools.retain(|entry| entry.target != *target || entry.tool != *tool);
            }
            Subject::Skill { target, uri } => {
                self.skills.retain(|entry| entry.target != *target || entry.approval.uri() != uri);
            }
        }
        before != self.len()
    }

    fn save(&self, folder: &StateFolder) -> Result<()> {
        let mut content = serde_json::to_vec_pretty(self).context("cannot write what was decided")?;
        content.push(b'\n');
        folder.replace(FILE, &content)
    }
}

/// Whether two are the same command of the same file, or send the same to the same server, whatever else is in the file.
fn is_same(one: &ServerIdentity, other: &ServerIdentity) -> bool {
    let file = |identity: &ServerIdentity| identity.source.as_ref().map(|source| source.file.clone());
    one.command == other.command
        && one.command_sha256 == other.command_sha256
        && one.sends == other.sends
        && file(one) == file(other)
}

/// Keeps a decision about a server or a tool, instead of any earlier one about the same.
pub(crate) fn decide(folder: &StateFolder, subject: Subject, decision: Decision) -> Result<()> {
    change(folder, &subject.clone(), |trust, time| match subject {
        Subject::Server(server) => trust.servers.push(ServerEntry { server, decision, time }),
        Subject::Tool { target, tool } => trust.tools.push(ToolEntry { target, tool, decision, time }),
        // An approval is of files, which only their server knows.
        Subject::Skill { .. } => {}
    })
}

/// Keeps the approval of a skill, instead of any earlier one of the same.
pub(crate) fn approve_skill(folder: &StateFolder, target: &str, approval: Approval) -> Result<()> {
    let subject = Subject::Skill { target: target.to_owned(), uri: approval.uri().to_owned() };
    let target = target.to_owned();
    change(folder, &subject, |trust, time| trust.skills.push(SkillApproval { target, approval, time }))
}

fn change(folder: &StateFolder, subject: &Subject, add: impl FnOnce(&mut Trust, String)) -> Result<()> {
    let _locked = folder.lock()?;
    let mut trust = Trust::load(folder)?;
    trust.forget(subject);
    if trust.len() >= MAX_DECISIONS {
        bail!("there are {MAX_DECISIONS} decisions already; revoke some");
    }
    add(&mut trust, rfc3339(SystemTime::now()));
    trust.save(folder)
}

/// Forgets a decision; whether there was one.
pub(crate) fn revoke(folder: &StateFolder, subject: &Subject) -> Result<bool> {
    let _locked = folder.lock()?;
    let mut trust = Trust::load(folder)?;
    let found = trust.forget(subject);
    if found {
        trust.save(folder)?;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn server(words: &[&str], source: Option<&Path>) -> ServerIdentity {
        let command: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        ServerIdentity::new(&command, source.map(|path| Source::read(path).unwrap()))
    }

    fn tool(name: &str) -> Subject {
        Subject::Tool { target: "http://a/".to_owned(), tool: name.to_owned() }
    }

    #[test]
    fn decisions_are_kept_changed_and_forgotten() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = StateFolder::at(temporary.path());
        let status = |words: &[&str]| Trust::load(&folder).unwrap().server(&server(words, None));
        assert_eq!(status(&["a"]), TrustStatus::Unknown);
        decide(&folder, Subject::Server(server(&["a"], None)), Decision::Allowed).unwrap();
        assert_eq!(status(&["a"]), TrustStatus::Allowed);
        assert_eq!(status(&["a", "--more"]), TrustStatus::Unknown, "every argument counts");
        decide(&folder, Subject::Server(server(&["a"], None)), Decision::Disabled).unwrap();
        assert_eq!(status(&["a"]), TrustStatus::Disabled);
        assert!(revoke(&folder, &Subject::Server(server(&["a"], None))).unwrap());
        assert!(!revoke(&folder, &Subject::Server(server(&["a"], None))).unwrap());
        assert_eq!(status(&["a"]), TrustStatus::Unknown);
    }

    #[test]
    fn commands_are_told_apart_by_secrets_that_are_not_kept() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = StateFolder::at(temporary.path());
        let status = |words: &[&str]| Trust::load(&folder).unwrap().server(&server(words, None));
        decide(&folder, Subject::Server(server(&["a", "--key", "one"], None)), Decision::Allowed).unwrap();
        assert_eq!(status(&["a", "--key", "one"]), TrustStatus::Allowed);
        assert_eq!(status(&["a", "--key", "two"]), TrustStatus::Unknown);
        assert_eq!(
            status(&["a", "--key", "***"]),
            TrustStatus::Unknown,
            "what is shown is not what was allowed"
        );
        let kept = fs::read_to_string(temporary.path().join(FILE)).unwrap();
        assert!(!kept.contains("one") && kept.contains("***"), "{kept}");
    }

    #[test]
    fn secrets_that_were_kept_before_are_still_known_and_go() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = StateFolder::at(temporary.path());
        let before =
            r#"{"servers":[{"command":["a","--key","hush"],"decision":"allowed","time":"x"}],"tools":[]}"#;
        fs::write(temporary.path().join(FILE), before).unwrap();
        let trust = Trust::load(&folder).unwrap();
        assert_eq!(trust.server(&server(&["a", "--key", "hush"], None)), TrustStatus::Allowed);
        decide(&folder, tool("other"), Decision::Allowed).unwrap();
        let kept = fs::read_to_string(temporary.path().join(FILE)).unwrap();
        assert!(!kept.contains("hush") && kept.contains("command_sha256"), "{kept}");
    }

    #[test]
    fn tools_are_decided_about_one_by_one() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = StateFolder::at(temporary.path());
        decide(&folder, tool("read"), Decision::Allowed).unwrap();
        decide(&folder, tool("wipe"), Decision::Disabled).unwrap();
        let trust = Trust::load(&folder).unwrap();
        for (target, name, expected) in [
            ("http://a/", "read", TrustStatus::Allowed),
            ("http://a/", "wipe", TrustStatus::Disabled),
            ("http://a/", "write", TrustStatus::Unknown),
            ("http://b/", "read", TrustStatus::Unknown),
        ] {
            assert_eq!(trust.tool(target, name), expected, "{target} {name}");
        }
    }

    #[test]
    fn a_file_that_has_changed_is_asked_about_again() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = StateFolder::at(&temporary.path().join("state"));
        let config = temporary.path().join("mcp.json");
        fs::write(&config, "{}").unwrap();
        decide(&folder, Subject::Server(server(&["a"], Some(&config))), Decision::Allowed).unwrap();
        let status = || Trust::load(&folder).unwrap().server(&server(&["a"], Some(&config)));
        assert_eq!(status(), TrustStatus::Allowed);
        let entry = || Trust::load(&folder).unwrap().servers.remove(0).status();
        assert_eq!(entry(), TrustStatus::Allowed);
        fs::write(&config, "{ }").unwrap();
        assert_eq!((status(), entry()), (TrustStatus::Changed, TrustStatus::Changed));
        assert_eq!(Trust::load(&folder).unwrap().server(&server(&["a"], None)), TrustStatus::Unknown);
        decide(&folder, Subject::Server(server(&["a"], Some(&config))), Decision::Disabled).unwrap();
        fs::write(&config, "{  }").unwrap();
        let disabled = (TrustStatus::Disabled, TrustStatus::Disabled);
        assert_eq!((status(), entry()), disabled, "what is disabled stays so");
        assert_eq!(Trust::load(&folder).unwrap().servers.len(), 1);
    }

    #[test]
    fn a_changed_file_revokes_the_approval_of_a_skill() {
        use refmcp_client::model::{Skill, SkillResource, SkillResources};
        use refmcp_client::skill::Digest;

        let skill = |content: &str| {
            let uri = "skill://a/SKILL.md";
            let file = SkillResource::new(uri, Digest::of(content.as_bytes()).to_string(), 1_u64);
            let fields = serde_json::json!({ "name": "a", "description": "A" }).as_object().cloned().unwrap();
            SkillEntry::check(Skill::new(uri, fields, SkillResources::Files(vec![file]))).unwrap()
        };
        let temporary = tempfile::tempdir().unwrap();
        let folder = StateFolder::at(temporary.path());
        let status =
            |target: &str, content: &str| Trust::load(&folder).unwrap().skill(target, &skill(content));
        assert_eq!(status("http://a/", "1"), TrustStatus::Unknown);
        approve_skill(&folder, "http://a/", Approval::of(&skill("1")).unwrap()).unwrap();
        assert_eq!(status("http://a/", "1"), TrustStatus::Allowed);
        assert_eq!(status("http://a/", "2"), TrustStatus::Changed);
        assert_eq!(status("http://b/", "1"), TrustStatus::Unknown, "another server's is another skill");
        approve_skill(&folder, "http://a/", Approval::of(&skill("2")).unwrap()).unwrap();
        assert_eq!(
            (status("http://a/", "1"), status("http://a/", "2")),
            (TrustStatus::Changed, TrustStatus::Allowed)
        );
        let subject = Subject::Skill { target: "http://a/".to_owned(), uri: "skill://a/SKILL.md".to_owned() };
        assert!(revoke(&folder, &subject).unwrap());
        assert_eq!(status("http://a/", "2"), TrustStatus::Unknown);
    }

    #[test]
    fn a_damaged_file_allows_nothing_and_is_not_overwritten() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = StateFolder::at(temporary.path());
        let path = temporary.path().join(FILE);
        for damaged in ["", "{", "[]", "{\"servers\":[{\"decision\":\"maybe\"}]}"] {
            fs::write(&path, damaged).unwrap();
            let error = format!("{:#}", Trust::load(&folder).unwrap_err());
            assert!(error.contains("is damaged"), "{error}");
            assert!(decide(&folder, tool("read"), Decision::Allowed).is_err());
            assert_eq!(fs::read_to_string(&path).unwrap(), damaged);
        }
    }

    #[test]
    fn decisions_made_at_once_are_all_kept() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = StateFolder::at(temporary.path());
        std::thread::scope(|scope| {
            for number in 0..8 {
                let folder = &folder;
                scope.spawn(move || decide(folder, tool(&format!("t{number}")), Decision::Allowed).unwrap());
            }
        });
        assert_eq!(Trust::load(&folder).unwrap().tools.len(), 8);
    }
}
