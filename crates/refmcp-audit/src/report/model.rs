//! The report: every rule that binds a party, with what was found out about it. This is the shape of its JSON.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::count::{Count, counts};
use super::rule::RuleReport;
use crate::auditor::{StepOutcome, Support};
use crate::verdict::{Role, RuleOutcome};

/// The version of the shape; readers refuse others. Members may be added within a version.
const VERSION: u32 = 1;

/// The verdicts on all conversations of some recordings, or on a server that was checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The version of the shape, which also tells that this is a report.
    #[serde(rename = "refmcpReport")]
    version: u32,
    /// The program that wrote it, with its version.
    pub generator: String,
    /// What it comes to.
    pub conclusion: Conclusion,
    /// How many rules of each party and level have each outcome, over all judgements.
    pub counts: Vec<Count>,
    /// The recordings that were judged together.
    pub recordings: Vec<RecordingFile>,
    /// How many connections were not judged, because too many were open at a time.
    pub connections_left_out: u64,
    /// The server that was checked, where this is no report on recordings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked: Option<CheckedServer>,
    /// The verdicts, by client, server and transport.
    pub judgements: Vec<JudgementReport>,
}

/// The server of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckedServer {
    /// Where it is or how it is started, without secrets.
    pub target: String,
    /// The revisions that were asked for and could not be checked, and why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unsupported: BTreeMap<String, String>,
    /// Entries of the baseline whose rule the server keeps by now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stale: Vec<String>,
    /// What was found out about the rules that each revision is scored by.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub scores: BTreeMap<String, Score>,
}

/// What was found out about the requirements of one revision over the transport in use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Score {
    /// How many there are.
    pub requirements: u64,
    /// Kept.
    pub kept: u64,
    /// Broken, known ones included.
    pub broken: u64,
    /// They should have been found out and could not be.
    pub not_verified: u64,
    /// The server does not offer what they are about, or it may not be tried.
    #[serde(default)]
    pub skipped: u64,
    /// Nothing that passed had to do with them.
    pub not_exercised: u64,
}

/// What a report comes to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Conclusion {
    /// A rule that the specification demands was broken.
    Broken,
    /// Rules were kept, and none was broken that the specification demands; what it recommends may have been.
    Kept,
    /// No rule was kept or broken: there is nothing to conclude from.
    #[default]
    NothingJudged,
}

/// A recording that was judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordingFile {
    /// The name of the file, or `-` for standard input; empty for what was judged while it passed.
    pub name: String,
    /// How many events it has.
    pub events: u64,
    /// Whether its last line is cut off, and was left out.
    pub cut_off: bool,
}

/// The verdicts on one client and one server over one transport.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JudgementReport {
    /// The name and version of the client; empty where it has not said them.
    pub client: String,
    /// The name and version of the server; empty where it has not said them.
    pub server: String,
    /// The transport.
    pub transport: String,
    /// The revisions that they spoke, oldest first.
    pub revisions: Vec<String>,
    /// The party whose process recorded.
    pub recorded_by: Role,
    /// What was seen of each feature of the protocol.
    pub features: Vec<FeatureReport>,
    /// The situations that the client was in, and what it did; none in reports on servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub client_steps: Vec<ClientStepReport>,
    /// Every rule that binds a party in one of the revisions, in the order of the catalogue.
    pub rules: Vec<RuleReport>,
}

/// What was seen of a feature; a party that did nothing with it is left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FeatureReport {
    /// The name of the feature.
    pub feature: String,
    /// The client's part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<Support>,
    /// The server's part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<Support>,
}

/// A situation that a client can be in, and what it did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientStepReport {
    /// The name of the situation.
    pub step: String,
    /// What a client does that supports it.
    pub shows: String,
    /// What this client did.
    pub outcome: StepOutcome,
    /// How often it did that.
    pub done: u64,
    /// How often it said no.
    pub declined: u64,
}

/// A JSON text that is no report.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// It is no report of an audit.
    #[error("it is no report: {0}")]
    Shape(#[from] serde_json::Error),
    /// A member has a value that no report has.
    #[error("it is no report: {0}")]
    Value(&'static str),
    /// It is a report of another version.
    #[error("it is a report of version {0}, and this program reads version {VERSION}")]
    Version(u32),
}

impl Report {
    /// The report on a server that was checked.
    pub fn of_check(checked: CheckedServer, judgement: JudgementReport) -> Self {
        Self { checked: Some(checked), ..Self::new(Vec::new(), 0, vec![judgement]) }
    }

    pub(super) fn new(
        recordings: Vec<RecordingFile>,
        connections_left_out: u64,
        judgements: Vec<JudgementReport>,
    ) -> Self {
        let mut report = Self {
            version: VERSION,
            generator: format!("refmcp {}", env!("CARGO_PKG_VERSION")),
            conclusion: Conclusion::NothingJudged,
            counts: Vec::new(),
            recordings,
            connections_left_out,
            checked: None,
            judgements,
        };
        report.counts = counts(report.rules());
        let is_broken = report.rules().any(RuleReport::breaks_must);
        let is_judged = report.rules().any(|rule| rule.outcome.is_judged());
        report.conclusion = match (is_broken, is_judged) {
            (true, _) => Conclusion::Broken,
            (false, true) => Conclusion::Kept,
            (false, false) => Conclusion::NothingJudged,
        };
        report
    }

    /// The report as JSON, on several lines.
    ///
    /// # Errors
    ///
    /// None that is known: strings, numbers and lists of them are written.
    pub fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self).map(|json| json + "\n")
    }

    /// Reads a report that was written as JSON.
    ///
    /// # Errors
    ///
    /// It is no report, or one of another version.
    pub fn from_json(json: &str) -> Result<Self, ReportError> {
        #[derive(Deserialize)]
        struct Version {
            #[serde(rename = "refmcpReport")]
            version: u32,
        }
        match serde_json::from_str::<Version>(json)?.version {
            VERSION => serde_json::from_str::<Self>(json)?.checked(),
            other => Err(ReportError::Version(other)),
        }
    }

    /// A report that was read, if ids and links are such: they are not only shown, but lead somewhere.
    fn checked(self) -> Result<Self, ReportError> {
        let is_id = |id: &str| id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        let is_link = |link: &str| {
            let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/?#%&=+".contains(&byte);
            link.starts_with("https://") && link.bytes().all(allowed)
        };
        if !self.rules().all(|rule| is_id(&rule.id)) {
            return Err(ReportError::Value(
                "the id of a rule has other characters than letters, digits and -",
            ));
        }
        if !self.rules().all(|rule| is_link(&rule.link)) {
            return Err(ReportError::Value("a link is none to a web page"));
        }
        Ok(self)
    }

    /// The broken rules with their judgements, those first that the specification demands.
    pub fn broken(&self) -> impl Iterator<Item = (&JudgementReport, &RuleReport)> {
        let musts = self.judgements.iter().flat_map(|it| it.broken_musts().map(move |rule| (it, rule)));
        let advice = self.judgements.iter().flat_map(|it| it.advice().map(move |rule| (it, rule)));
        musts.chain(advice)
    }

    /// What it is a report of.
    pub(super) fn title(&self) -> &'static str {
        if self.checked.is_some() { "Check report" } else { "Audit report" }
    }

    /// What a report comes to, in one sentence.
    pub fn summary(&self) -> String {
        let count = |is_it: fn(&RuleReport) -> bool| self.rules().filter(|rule| is_it(rule)).count() as u64;
        let kept = count(|rule| rule.outcome == RuleOutcome::Kept);
        let demanded = count(RuleReport::breaks_must);
        let excused = count(|rule| rule.outcome == RuleOutcome::Broken && rule.excuse.is_some());
        let advised = count(|rule| rule.outcome == RuleOutcome::Broken) - demanded - excused;
        let rules = |number| super::counted(number, "rule");
        let advice = match advised {
            0 => String::new(),
            number => format!("; {} that it recommends broken", rules(number)),
        };
        let excused = match excused {
            0 => String::new(),
            number => format!("; {} broken that fail nothing", rules(number)),
        };
        let advice = advice + &excused;
        let left_out = match self.connections_left_out {
            0 => String::new(),
            number => format!(" {} not judged: too many at a time.", super::counted(number, "connection")),
        };
        let summary = match self.conclusion {
            Conclusion::NothingJudged if self.checked.is_some() => {
                "Nothing was judged: nothing could be verified.".to_owned()
            }
            Conclusion::NothingJudged => {
                "Nothing was judged: no rule was kept or broken in what was recorded.".to_owned()
            }
            Conclusion::Kept => {
                format!("{} kept, none broken that the specification demands{advice}.", rules(kept))
            }
            Conclusion::Broken => {
                format!("{} broken that the specification demands{advice}; {kept} kept.", rules(demanded))
            }
        };
        summary + &left_out
    }

    pub(super) fn rules(&self) -> impl Iterator<Item = &RuleReport> {
        self.judgements.iter().flat_map(|judgement| &judgement.rules)
    }
}

impl RecordingFile {
    /// Whether there is a file.
    pub(super) fn is_written(&self) -> bool {
        !self.name.is_empty()
    }

    /// Its name for people.
    pub(super) fn title(&self) -> &str {
        if self.is_written() { &self.name } else { "what passed" }
    }

    /// How much was recorded.
    pub(super) fn extent(&self) -> String {
        let cut = if self.cut_off { "; its last line is cut off and left out" } else { "" };
        super::counted(self.events, "event") + cut
    }
}

impl CheckedServer {
    /// What was not checked, what is stale and the scores, one line each.
    pub(super) fn lines(&self) -> Vec<String> {
        let unsupported = self.unsupported.iter().map(|(it, why)| format!("{it} is not checked: {why}"));
        let stale =
            self.stale.iter().map(|it| format!("stale in the baseline: the server keeps {it} by now"));
        let scores = self.scores.iter().map(|(revision, score)| format!("{revision}: {score}"));
        unsupported.chain(stale).chain(scores).collect()
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { requirements, kept, broken, not_verified, skipped, not_exercised } = self;
        write!(
            f,
            "of {requirements} requirements {kept} kept, {broken} broken, {not_verified} not verified, \
             {skipped} skipped, {not_exercised} not exercised"
        )
    }
}

/// The broken rules of a judgement under their headings, worst first.
pub(super) fn broken_groups(judgement: &JudgementReport) -> [(&'static str, Vec<&RuleReport>); 3] {
    let (excused, advice): (Vec<_>, Vec<_>) = judgement.advice().partition(|rule| rule.excuse.is_some());
    [
        ("Broken, and demanded by the specification", judgement.broken_musts().collect()),
        ("Broken, and recommended by the specification", advice),
        ("Broken, and fails nothing", excused),
    ]
}

impl JudgementReport {
    /// The rules with this outcome.
    pub fn with(&self, outcome: RuleOutcome) -> impl Iterator<Item = &RuleReport> {
        self.rules.iter().filter(move |rule| rule.outcome == outcome)
    }

    /// The broken rules that the specification demands.
    pub fn broken_musts(&self) -> impl Iterator<Item = &RuleReport> {
        self.rules.iter().filter(|rule| rule.breaks_must())
    }

    /// The broken rules that the specification recommends or describes, and those that fail nothing.
    pub fn advice(&self) -> impl Iterator<Item = &RuleReport> {
        self.with(RuleOutcome::Broken).filter(|rule| !rule.breaks_must())
    }

    /// Whether a rule was kept or broken.
    pub fn is_judged(&self) -> bool {
        self.rules.iter().any(|rule| rule.outcome.is_judged())
    }

    /// Both parties, the transport and the revisions.
    pub fn title(&self) -> String {
        let name = |name: &str, party: &str| match name {
            "" => format!("a {party} without a name"),
            name => name.to_owned(),
        };
        let revisions = match &*self.revisions {
            [] => "no revision agreed".to_owned(),
            some => some.join(", "),
        };
        let (client, server) = (name(&self.client, "client"), name(&self.server, "server"));
        format!("{client} and {server}, {}, {revisions}", self.transport)
    }
}
