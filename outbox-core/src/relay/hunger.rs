//! How much is claimed at once, while handlers are faster than claims.

/// Claims of unordered rows side by side, while handlers are faster than claims. A claim is mostly waiting for the
/// database, and there for the disk.
pub(crate) const SIDE_BY_SIDE: u32 = 3;

/// Batches of ordered rows that are then claimed in one claim, step by step. Its many statements cost as much for many
/// rows as for few; and what a key has in flight must be marked before more of the key is claimed, so with few keys
/// nothing else overlaps. More would be a little faster still; but rows of a relay that dies are taken over one by one.
const IN_ORDER: [u32; 3] = [1, 5, 10];

/// Bytes of payload that several batches together may be expected to hold. Beyond that the database's answer is no longer
/// what costs time, and memory is to be bounded by a batch.
const MAX_BYTES: usize = 8 * 1024 * 1024;

/// What the claims of one kind have shown.
#[derive(Debug)]
pub(crate) struct Hunger {
    steps: &'static [u32],
    step: usize,
    was_full: bool,
    /// Of the largest payload of the last claim.
    row_bytes: usize,
}

impl Hunger {
    pub(crate) fn unordered() -> Self {
        Self { steps: &[1, SIDE_BY_SIDE], step: 0, was_full: false, row_bytes: 0 }
    }

    pub(crate) fn ordered() -> Self {
        Self { steps: &IN_ORDER, ..Self::unordered() }
    }

    /// How many batches of so many rows to claim at once: more than one once the last two claims were full, and when the
    /// last one was answered no handler ran any more.
    pub(crate) fn batches(&self, rows: u32) -> u32 {
        let fits = |batches: &&u32| {
            self.row_bytes.saturating_mul((**batches as usize).saturating_mul(rows as usize)) <= MAX_BYTES
        };
        self.steps[..=self.step].iter().rev().find(fits).copied().unwrap_or(1)
    }

    /// A claim was answered, with a largest payload of so many bytes. At the start of a backlog nothing has run yet, so one full claim says nothing.
    pub(crate) fn answered(&mut self, is_full: bool, nothing_runs: bool, row_bytes: usize) {
        let is_starved = is_full && self.was_full && nothing_runs;
        self.step = if is_starved { (self.step + 1).min(self.steps.len() - 1) } else { 0 };
        self.was_full = is_full;
        self.row_bytes = row_bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_claims_and_idle_handlers_show_step_by_step_that_handlers_are_faster() {
        let mut hunger = Hunger::ordered();
        let mut steps = Vec::new();
        for (is_full, nothing_runs) in [(true, true), (true, true), (true, true), (true, true), (true, false)]
        {
            hunger.answered(is_full, nothing_runs, 100);
            steps.push(hunger.batches(100));
        }
        assert_eq!(
            steps,
            [1, 5, 10, 10, 1],
            "nothing has run before the first, and handlers run after the last"
        );
        hunger.answered(true, true, 100);
        assert_eq!(hunger.batches(100), 5);
        hunger.answered(false, true, 100);
        assert_eq!(hunger.batches(100), 1, "there is no more");
    }

    #[test]
    fn large_payloads_are_claimed_by_the_batch() {
        let mut hunger = Hunger::ordered();
        (0..3).for_each(|_| hunger.answered(true, true, 10_000));
        assert_eq!(hunger.batches(100), 5, "ten batches would be 10 MB");
        (0..3).for_each(|_| hunger.answered(true, true, 1_048_576));
        assert_eq!(hunger.batches(100), 1);
    }
}
