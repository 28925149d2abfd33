//! The orders in which a client can answer.

/// How a client answers the questions that are open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerOrder {
    /// All of them, in the order in which they came.
    InOrder,
    /// All of them, the last one first.
    Reversed,
    /// All of them, beginning with the second.
    Rotated,
    /// Only the first; the others come again.
    FirstOnly,
    /// Only the last; the others come again.
    LastOnly,
    /// All of them, before they were asked.
    InAdvance,
}

impl AnswerOrder {
    /// Where questions are requests. Leaving one out would only keep the server waiting.
    pub const BY_REQUEST: [Self; 3] = [Self::InOrder, Self::Reversed, Self::Rotated];
    /// Where questions come as a result. Answers travel together there, so they have no order.
    pub const BY_RESULT: [Self; 4] = [Self::InOrder, Self::FirstOnly, Self::LastOnly, Self::InAdvance];

    /// Leaves the questions to be answered now, in order.
    pub(super) fn arrange<T>(self, open: &mut Vec<T>) {
        match self {
            Self::InOrder | Self::InAdvance => {}
            Self::Reversed => open.reverse(),
            Self::Rotated => {
                let second = 1.min(open.len());
                open.rotate_left(second);
            }
            Self::FirstOnly => open.truncate(1),
            Self::LastOnly => drop(open.drain(..open.len().saturating_sub(1))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_leaves_something_to_answer() {
        for (order, left) in [
            (AnswerOrder::InOrder, "abc"),
            (AnswerOrder::Reversed, "cba"),
            (AnswerOrder::Rotated, "bca"),
            (AnswerOrder::FirstOnly, "a"),
            (AnswerOrder::LastOnly, "c"),
        ] {
            let mut open: Vec<char> = "abc".chars().collect();
            order.arrange(&mut open);
            assert_eq!(open.into_iter().collect::<String>(), left, "{order:?}");
        }
    }
}
