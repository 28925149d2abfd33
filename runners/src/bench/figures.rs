//! Medians, tables and goals.

/// The middle of some measurements, and how far they lie apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spread {
    pub(super) median: f64,
    pub(super) lowest: f64,
    pub(super) highest: f64,
}

impl Spread {
    pub(super) fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let at = |index: usize| values.get(index).copied().unwrap_or(f64::NAN);
        Self { median: at(values.len() / 2), lowest: at(0), highest: at(values.len().saturating_sub(1)) }
    }

    /// `12.0 (11.0 to 14.5)`
    pub(super) fn shown(self, decimals: usize) -> String {
        let Self { median, lowest, highest } = self;
        format!("{median:.decimals$} ({lowest:.decimals$} to {highest:.decimals$})")
    }
}

/// A table; its first row is the heads of its columns.
pub(super) fn table<const COLUMNS: usize>(
    heads: [&str; COLUMNS],
    rows: impl IntoIterator<Item = [String; COLUMNS]>,
) -> String {
    let mut text = format!("| {} |\n|{}\n", heads.join(" | "), "---|".repeat(COLUMNS));
    for row in rows {
        text += &format!("| {} |\n", row.join(" | "));
    }
    text
}

/// What we want to reach: every figure at most `most`.
pub(super) struct Goal {
    pub(super) what: &'static str,
    pub(super) most: f64,
    pub(super) figures: Vec<f64>,
}

impl Goal {
    fn is_met(&self) -> bool {
        self.figures.iter().all(|figure| *figure <= self.most)
    }
}

/// The goals next to what was measured.
pub(super) fn goals(goals: &[Goal]) -> String {
    if goals.is_empty() {
        return String::new();
    }
    let rows = goals.iter().map(|goal| {
        // Ratios have decimals, counts do not.
        let shown =
            |figure: &f64| if goal.most < 1000.0 { format!("{figure:.2}") } else { format!("{figure:.0}") };
        let figures: Vec<String> = goal.figures.iter().map(shown).collect();
        let met = if goal.is_met() { "yes" } else { "not yet" };
        [goal.what.to_owned(), format!("at most {}", goal.most), figures.join(", "), met.to_owned()]
    });
    format!("\nGoals:\n\n{}", table(["what", "goal", "measured", "met"], rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        let spread = Spread::of([5.0, 100.0, 1.0]);
        assert_eq!(spread, Spread { median: 5.0, lowest: 1.0, highest: 100.0 });
        assert_eq!(spread.shown(0), "5 (1 to 100)");
    }

    #[test]
    fn a_goal_is_met_by_all_its_figures() {
        let goal = |figures: &[f64]| Goal { what: "speed", most: 1.25, figures: figures.to_vec() };
        let text = goals(&[goal(&[1.0, 1.25]), goal(&[1.0, 1.3])]);
        assert!(text.contains("| speed | at most 1.25 | 1.00, 1.25 | yes |"), "{text}");
        assert!(text.contains("| speed | at most 1.25 | 1.00, 1.30 | not yet |"), "{text}");
    }
}
