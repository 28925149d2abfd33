//! Sets of revisions, as transcripts write them.

use std::str::FromStr;

use refmcp_proto::revision::{Lifecycle, Revision};

/// Some of the revisions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevisionSet(Vec<Revision>);

impl RevisionSet {
    /// Every revision.
    #[must_use]
    pub fn all() -> Self {
        Self(Revision::ALL.to_vec())
    }

    /// Whether one of them is this.
    #[must_use]
    pub fn contains(&self, revision: Revision) -> bool {
        self.0.contains(&revision)
    }

    /// They all, oldest first.
    #[must_use]
    pub fn revisions(&self) -> Vec<Revision> {
        self.0.clone()
    }

    /// The shortest way to say `these`, among `among`: nothing when it is all of them.
    pub(super) fn name(these: &[Revision], among: &[Revision]) -> Option<String> {
        let (Some(first), Some(last)) = (these.first(), these.last()) else { return Some("none".to_owned()) };
        if these == among {
            return None;
        }
        let is_run = among.iter().filter(|other| *first <= **other && **other <= *last).eq(these);
        if !is_run {
            return Some(these.iter().map(|revision| revision.as_str()).collect::<Vec<_>>().join(", "));
        }
        Some(match (among.first() == Some(first), among.last() == Some(last)) {
            _ if first == last => first.to_string(),
            (true, _) if Revision::with(Lifecycle::Handshake).next() == Some(*last) => "session".to_owned(),
            (true, _) => format!("..{last}"),
            (_, true) => format!("{first}+"),
            _ => format!("{first}..{last}"),
        })
    }
}

impl FromStr for RevisionSet {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut set = Vec::new();
        for part in text.split(',').map(str::trim) {
            set.extend(part_of(part)?);
        }
        set.sort();
        set.dedup();
        Ok(Self(set))
    }
}

fn part_of(text: &str) -> Result<Vec<Revision>, String> {
    let date = |text: &str| text.parse::<Revision>().map_err(|_| format!("{text} is not a revision"));
    let between = |from: Revision, to: Revision| {
        Revision::ALL.into_iter().filter(|revision| from <= *revision && *revision <= to).collect()
    };
    Ok(match text {
        "all" => Revision::ALL.to_vec(),
        "session" => Revision::with(Lifecycle::Handshake).collect(),
        "stateless" => Revision::with(Lifecycle::PerRequest).collect(),
        _ => match (text.split_once(".."), text.strip_suffix('+')) {
            (Some(("", to)), _) => between(Revision::ALL[0], date(to)?),
            (Some((from, to)), _) => between(date(from)?, date(to)?),
            (_, Some(from)) => between(date(from)?, Revision::LATEST),
            _ => vec![date(text)?],
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<Revision> {
        text.parse::<RevisionSet>().unwrap().revisions()
    }

    #[test]
    fn sets_are_read() {
        assert_eq!(read("all"), Revision::ALL);
        assert_eq!(read("session"), Revision::ALL[..4]);
        assert_eq!(read("stateless"), [Revision::LATEST]);
        assert_eq!(read("2025-11-25+"), Revision::ALL[3..]);
        assert_eq!(read("..2025-03-26"), Revision::ALL[..2]);
        assert_eq!(read("2025-03-26..2025-06-18"), Revision::ALL[1..3]);
        assert_eq!(read("2026-07-28, 2024-11-05"), [Revision::ALL[0], Revision::V2026_07_28]);
        assert!("2025".parse::<RevisionSet>().is_err());
    }

    #[test]
    fn names_are_short_and_mean_the_same() {
        let all = Revision::ALL;
        for these in [&all[..1], &all[..2], &all[..4], &all[1..3], &all[3..], &all[4..]] {
            let name = RevisionSet::name(these, &all).unwrap();
            assert_eq!(read(&name), these, "{name}");
        }
        assert_eq!(RevisionSet::name(&all, &all), None);
        assert_eq!(RevisionSet::name(&[all[0], all[4]], &all).as_deref(), Some("2024-11-05, 2026-07-28"));
    }
}
