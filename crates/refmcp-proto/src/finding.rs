//! What a peer did that the specification does not want, whether or not it was served.

use std::borrow::Cow;

/// A rule that a peer broke.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The id of the rule in the project's catalogue.
    pub rule: &'static str,
    /// What happened, for a person.
    pub what: Cow<'static, str>,
}

/// The findings of one session: each rule once with a count, so that a noisy peer fills no memory.
#[derive(Debug, Clone, Default)]
pub struct Findings {
    seen: Vec<(Finding, u64)>,
}

impl Findings {
    /// Notes a finding; `true` when it is the first for its rule.
    pub fn note(&mut self, finding: &Finding) -> bool {
        match self.seen.iter_mut().find(|(known, _)| known.rule == finding.rule) {
            Some((_, count)) => {
                *count += 1;
                false
            }
            None => {
                self.seen.push((finding.clone(), 1));
                true
            }
        }
    }

    /// The first finding for each rule, and how often that rule was broken.
    pub fn iter(&self) -> impl Iterator<Item = (&Finding, u64)> {
        self.seen.iter().map(|(finding, count)| (finding, *count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_are_counted_not_kept() {
        let mut findings = Findings::default();
        let finding = Finding { rule: "LIFE-03", what: "too early".into() };
        assert!(findings.note(&finding));
        assert!(!findings.note(&finding));
        assert_eq!(findings.iter().map(|(_, count)| count).collect::<Vec<_>>(), [2]);
    }
}
