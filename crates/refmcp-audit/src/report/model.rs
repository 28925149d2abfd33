//! The report: every rule that binds a party, with what was found out about it. This is the shape of its JSON.

use std::fmt;

use refmcp_proto::rule::Level;
use serde::{Deserialize, Serialize};

use crate::auditor::Support;
use crate::verdict::{Outcome, Role, Verdict};

/// The version of the shape; readers refuse others. Members may be added within a version.
const VERSION: u32 = 1;

/// The verdicts on all conversations of some recordings.
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
    /// The verdicts, by client, server and transport.
    pub judgements: Vec<JudgementReport>,
}

/// What a report comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Conclusion {
    /// A rule that the specification demands was broken.
    Broken,
    /// Rules were kept, and none was broken that the specification demands; what it recommends may have been.
    Kept,
    /// No rule was kept or broken: there is nothing to conclude from.
    NothingJudged,
}

/// How many rules of a party and a level have each outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Count {
    /// The party.
    pub party: Role,
    /// The level.
    #[serde(with = "level_name")]
    pub level: Level,
    /// Broken at least once.
    pub broken: u64,
    /// Kept.
    pub kept: u64,
    /// Their situation did not arise.
    pub not_exercised: u64,
    /// What passes does not show them.
    pub not_judged: u64,
}

/// A recording that was judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordingFile {
    /// The name of the file, or `-` for standard input.
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

/// What one party did about one rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RuleReport {
    /// The id of the rule.
    pub id: String,
    /// The party.
    pub party: Role,
    /// How strict the rule is.
    #[serde(with = "level_name")]
    pub level: Level,
    /// What was found out.
    pub outcome: RuleOutcome,
    /// The rule in one sentence.
    pub text: String,
    /// Where the specification has it.
    pub link: String,
    /// How often it was kept.
    pub kept: u64,
    /// How often it was broken.
    pub broken: u64,
    /// The different ways in which it was broken; there may be more than are listed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub violations: Vec<ViolationReport>,
    /// Why what passes does not show it, where it is not judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What was found out about a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RuleOutcome {
    /// The party broke it at least once.
    Broken,
    /// The party was in the rule's situation and kept it.
    Kept,
    /// The rule's situation did not arise.
    NotExercised,
    /// What passes does not show whether it is kept.
    NotJudged,
}

/// One way in which a rule was broken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ViolationReport {
    /// What happened.
    pub what: String,
    /// What the party should do instead.
    pub expected: String,
    /// How often it happened so.
    pub count: u64,
    /// Where it happened first; none where it is about no single event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<EvidenceReport>,
}

/// Where something is in the recordings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EvidenceReport {
    /// The recording.
    pub file: String,
    /// The line of it, from 1.
    pub line: u64,
    /// The number of the event over all recordings, from 1.
    pub event: u64,
    /// When, in milliseconds since the Unix epoch.
    pub at: u64,
    /// The connection, as the recording numbers it.
    pub connection: u64,
    /// The HTTP request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<u64>,
    /// The message or the HTTP head; what is cut says how long it is.
    pub text: String,
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

    /// What a report comes to, in one sentence.
    pub fn summary(&self) -> String {
        let count = |is_it: fn(&RuleReport) -> bool| self.rules().filter(|rule| is_it(rule)).count() as u64;
        let kept = count(|rule| rule.outcome == RuleOutcome::Kept);
        let demanded = count(RuleReport::breaks_must);
        let advised = count(|rule| rule.outcome == RuleOutcome::Broken) - demanded;
        let rules = |number| super::counted(number, "rule");
        let advice = match advised {
            0 => String::new(),
            number => format!("; {} that it recommends broken", rules(number)),
        };
        let left_out = match self.connections_left_out {
            0 => String::new(),
            number => format!(" {} not judged: too many at a time.", super::counted(number, "connection")),
        };
        let summary = match self.conclusion {
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

/// Counts rules by party and level, in that order.
pub(super) fn counts<'a>(rules: impl Iterator<Item = &'a RuleReport>) -> Vec<Count> {
    let mut counts: Vec<Count> = Vec::new();
    for rule in rules {
        let (party, level) = (rule.party, rule.level);
        let at = counts.iter().position(|count| (count.party, count.level) == (party, level));
        let at = at.unwrap_or_else(|| {
            counts.push(Count { party, level, broken: 0, kept: 0, not_exercised: 0, not_judged: 0 });
            counts.len() - 1
        });
        let Some(count) = counts.get_mut(at) else { continue };
        *match rule.outcome {
            RuleOutcome::Broken => &mut count.broken,
            RuleOutcome::Kept => &mut count.kept,
            RuleOutcome::NotExercised => &mut count.not_exercised,
            RuleOutcome::NotJudged => &mut count.not_judged,
        } += 1;
    }
    counts.sort_by_key(|count| (count.party, count.level));
    counts
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

    /// The broken rules that the specification recommends or describes.
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

impl RuleReport {
    pub(super) fn new(verdict: &Verdict, is_audited: bool, violations: Vec<ViolationReport>) -> Self {
        let outcome = match verdict.outcome() {
            Outcome::Broken => RuleOutcome::Broken,
            Outcome::Kept => RuleOutcome::Kept,
            Outcome::NotExercised if is_audited => RuleOutcome::NotExercised,
            Outcome::NotExercised => RuleOutcome::NotJudged,
        };
        let reason = crate::coverage::not_audited(verdict.rule).filter(|_| outcome == RuleOutcome::NotJudged);
        let Verdict { rule, role, kept, broken, .. } = *verdict;
        Self {
            id: rule.id.to_owned(),
            party: role,
            level: rule.level,
            outcome,
            text: rule.text.to_owned(),
            link: rule.link(),
            kept,
            broken,
            violations,
            reason: reason.map(str::to_owned),
        }
    }

    /// Whether the specification demands what was not kept.
    pub fn breaks_must(&self) -> bool {
        self.outcome == RuleOutcome::Broken && self.is_demanded()
    }

    /// Whether the specification demands it; the rest it recommends or describes.
    pub fn is_demanded(&self) -> bool {
        matches!(self.level, Level::Must | Level::May)
    }

    /// How often it was broken in ways that are not listed.
    pub fn unlisted(&self) -> u64 {
        self.broken.saturating_sub(self.violations.iter().map(|violation| violation.count).sum())
    }
}

impl RuleOutcome {
    /// Every one.
    pub const ALL: [Self; 4] = [Self::Broken, Self::Kept, Self::NotExercised, Self::NotJudged];

    /// Its name as a heading.
    pub(super) fn heading(self) -> &'static str {
        match self {
            Self::Broken => "Broken",
            Self::Kept => "Kept",
            Self::NotExercised => "Not exercised",
            Self::NotJudged => "Not judged",
        }
    }

    /// Whether the party was in the rule's situation.
    pub fn is_judged(self) -> bool {
        matches!(self, Self::Broken | Self::Kept)
    }
}

impl fmt::Display for RuleOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Broken => "broken",
            Self::Kept => "kept",
            Self::NotExercised => "not exercised",
            Self::NotJudged => "not judged",
        })
    }
}

impl fmt::Display for EvidenceReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}, connection {}", self.file, self.line, self.connection)?;
        match self.stream {
            Some(stream) => write!(f, ", HTTP request {stream}"),
            None => Ok(()),
        }
    }
}

/// Levels by their names.
mod level_name {
    use refmcp_proto::rule::Level;
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub(super) fn serialize<S: Serializer>(level: &Level, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(level)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Level, D::Error> {
        let name = String::deserialize(deserializer)?;
        let levels = [Level::Must, Level::Should, Level::May, Level::Note];
        let found = levels.into_iter().find(|level| level.to_string() == name);
        found.ok_or_else(|| de::Error::custom(format!("`{name}` is no level of a rule")))
    }
}
