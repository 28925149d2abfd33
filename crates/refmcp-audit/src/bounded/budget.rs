//! How many messages are judged in the long run and at once.

/// A token bucket with a token for each message, as the time at which it will be full again.
#[derive(Debug)]
pub(super) struct MessageBudget {
    at_once: u64,
    /// Microseconds until a token comes back.
    interval: u64,
    /// When the bucket will be full, in microseconds.
    full_at: u64,
}

impl MessageBudget {
    pub(super) fn new(per_second: u32, at_once: u32) -> Self {
        Self { at_once: u64::from(at_once), interval: 1_000_000 / u64::from(per_second.max(1)), full_at: 0 }
    }

    /// Takes a token, if there is one at this time in milliseconds.
    pub(super) fn take(&mut self, now: u64) -> bool {
        let is_left = self.left(now) > 0;
        if is_left {
            self.full_at = self.full_at.max(now.saturating_mul(1000)) + self.interval;
        }
        is_left
    }

    /// How many tokens there are.
    pub(super) fn left(&self, now: u64) -> u64 {
        let missing = self.full_at.saturating_sub(now.saturating_mul(1000)).div_ceil(self.interval);
        self.at_once.saturating_sub(missing)
    }

    /// When there will be so many, in milliseconds.
    pub(super) fn when(&self, wanted: u64) -> u64 {
        let spent = self.at_once.saturating_sub(wanted) * self.interval;
        self.full_at.saturating_sub(spent).div_ceil(1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_come_back_with_time() {
        let mut budget = MessageBudget::new(10, 4);
        let start = 1_700_000_000_000;
        assert_eq!((0..9).filter(|_| budget.take(start)).count(), 4);
        assert_eq!((budget.left(start), budget.left(start + 99), budget.left(start + 100)), (0, 0, 1));
        assert_eq!(budget.when(1), start + 100);
        assert_eq!(budget.left(budget.when(3)), 3);
        assert_eq!(budget.left(start + 3_600_000), 4);
    }
}
