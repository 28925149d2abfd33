//! What a peer did that the specification does not want, whether or not it was served.

use std::borrow::Cow;

/// A rule that a peer broke.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The id of the rule in the project's catalogue.
    pub rule: &'static str,
    /// What happened, for a person. Where a fixed text is enough it is borrowed, and then each text is kept; texts
    /// that quote the peer are owned, and only the first of a rule is kept.
    pub what: Cow<'static, str>,
}

/// Rules that the specification recommends or describes and does not demand.
const RECOMMENDED: [&str; 3] = ["RES-04", "RPC-10", "TOOL-02"];

impl Finding {
    /// Whether the specification demands what was not kept (MUST, MUST NOT) and does not only recommend it.
    pub fn is_violation(&self) -> bool {
        !RECOMMENDED.contains(&self.rule)
    }

    /// Whether the two are one finding, however often it is made. Fixed texts tell different mistakes against one
    /// rule apart; there are only as many of them as this program has.
    fn repeats(&self, other: &Self) -> bool {
        self.rule == other.rule
            && match (&self.what, &other.what) {
                (Cow::Borrowed(one), Cow::Borrowed(two)) => one == two,
                (Cow::Owned(_), Cow::Owned(_)) => true,
                _ => false,
            }
    }
}

/// The findings of one session: each once with a count, so that a noisy peer fills no memory.
#[derive(Debug, Clone, Default)]
pub struct Findings {
    seen: Vec<(Finding, u64)>,
}

impl Findings {
    /// Notes a finding; `true` when it is the first of its kind.
    pub fn record(&mut self, finding: &Finding) -> bool {
        match self.seen.iter_mut().find(|(known, _)| known.repeats(finding)) {
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

    /// The findings in the order in which they were first made, and how often each was.
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
        assert!(findings.record(&finding));
        assert!(!findings.record(&finding));
        assert_eq!(findings.iter().map(|(_, count)| count).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn fixed_texts_of_one_rule_are_separate_findings_and_quotes_are_not() {
        let mut findings = Findings::default();
        assert!(findings.record(&Finding { rule: "LIFE-02", what: "too early".into() }));
        assert!(findings.record(&Finding { rule: "LIFE-02", what: "by another name".into() }));
        for number in 0..1000 {
            let quoted = Finding { rule: "RPC-05", what: format!("an answer to {number}").into() };
            assert_eq!(findings.record(&quoted), number == 0);
        }
        let kept: Vec<_> = findings.iter().map(|(finding, count)| (&*finding.what, count)).collect();
        assert_eq!(kept, [("too early", 1), ("by another name", 1), ("an answer to 0", 1000)]);
    }

    #[test]
    fn recommended_rules_are_no_violations() {
        let found = |rule| Finding { rule, what: "".into() }.is_violation();
        assert!(found("CANC-01") && found("LIFE-02"));
        assert!(!found("TOOL-02"));
    }
}
