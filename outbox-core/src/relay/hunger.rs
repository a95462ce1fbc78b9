//! Whether handlers are faster than claims.

/// Claims of unordered rows side by side, while handlers are faster than claims. A claim is mostly waiting for the
/// database, and there for the disk.
pub(crate) const CLAIMS_AT_ONCE: usize = 3;

/// How many times as many ordered rows are then claimed in one claim.
pub(crate) const MORE_IN_ORDER: u32 = 5;

/// What the claims of one kind have shown.
#[derive(Debug, Default)]
pub(crate) struct Hunger {
    was_full: bool,
    is_starved: bool,
}

impl Hunger {
    /// Whether more may be claimed at once: the last two claims were full, and when the last one was answered no handler
    /// ran any more.
    pub(crate) fn is_starved(&self) -> bool {
        self.is_starved
    }

    /// A claim was answered. At the start of a backlog nothing has run yet, so one full claim says nothing.
    pub(crate) fn answered(&mut self, is_full: bool, nothing_runs: bool) {
        self.is_starved = is_full && self.was_full && nothing_runs;
        self.was_full = is_full;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_full_claims_and_idle_handlers_show_that_handlers_are_faster() {
        let mut hunger = Hunger::default();
        hunger.answered(true, true);
        assert!(!hunger.is_starved(), "nothing has run yet");
        hunger.answered(true, false);
        assert!(!hunger.is_starved(), "handlers still run");
        hunger.answered(true, true);
        assert!(hunger.is_starved());
        hunger.answered(false, true);
        assert!(!hunger.is_starved(), "there is no more");
    }
}
