//! How much is claimed at once, while handlers are faster than claims.

/// Claims of unordered rows side by side, while handlers are faster than claims. A claim is mostly waiting for the
/// database, and there for the disk.
pub(crate) const SIDE_BY_SIDE: u32 = 2;

/// Batches that each of them then claims: planning and committing cost as much for two as for one.
const UNORDERED: [u32; 2] = [1, 2];

/// Batches of ordered rows that are then claimed in one claim, step by step. Its many statements cost as much for many
/// rows as for few; and what a key has in flight must be marked before more of the key is claimed, so with few keys
/// nothing else overlaps. More would hardly be faster, and rows of a relay that dies are taken over one by one.
const ORDERED: [u32; 3] = [1, 5, 20];

/// Bytes of payload that several batches together may be expected to hold. Beyond that the database's answer is no longer
/// what costs time, and memory is to be bounded by a batch.
const MAX_BYTES: usize = 8 * 1024 * 1024;

/// What the claims of one kind have shown.
#[derive(Debug)]
pub(crate) struct Hunger {
    steps: &'static [u32],
    step: usize,
    /// Claims that are made side by side once they are of more than a batch.
    claims: u32,
    was_full: bool,
    /// Of the largest payload of the last claims.
    row_bytes: usize,
}

impl Hunger {
    pub(crate) fn unordered() -> Self {
        Self { steps: &UNORDERED, step: 0, claims: SIDE_BY_SIDE, was_full: false, row_bytes: 0 }
    }

    pub(crate) fn ordered() -> Self {
        Self { steps: &ORDERED, claims: 1, ..Self::unordered() }
    }

    /// How many batches of so many rows to claim in a claim: more than one once the last two claims were full, and when
    /// the last one was answered no handler ran any more.
    pub(crate) fn batches(&self, rows: u32) -> u32 {
        let bytes_of = |batches: u32| {
            let rows = u64::from(batches) * u64::from(self.claims) * u64::from(rows);
            usize::try_from(rows).unwrap_or(usize::MAX).saturating_mul(self.row_bytes)
        };
        let fits = |batches: &&u32| bytes_of(**batches) <= MAX_BYTES;
        self.steps[..=self.step].iter().rev().find(fits).copied().unwrap_or(1)
    }

    /// A claim was answered, with a largest payload of so many bytes. At the start of a backlog nothing has run yet, so one
    /// full claim says nothing.
    pub(crate) fn answered(&mut self, is_full: bool, nothing_runs: bool, row_bytes: usize) {
        let is_starved = is_full && self.was_full && nothing_runs;
        self.step = if is_starved { (self.step + 1).min(self.steps.len() - 1) } else { 0 };
        self.was_full = is_full;
        // It falls slowly: one claim of small ones says little of the next.
        self.row_bytes = row_bytes.max(self.row_bytes / 2);
    }

    /// A claim failed; perhaps a smaller one does not.
    pub(crate) fn failed(&mut self) {
        self.step = 0;
        self.was_full = false;
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
            [1, 5, 20, 20, 1],
            "nothing has run before the first, and handlers run after the last"
        );
        hunger.answered(true, true, 100);
        assert_eq!(hunger.batches(100), 5);
        hunger.answered(false, true, 100);
        assert_eq!(hunger.batches(100), 1, "there is no more");
        (0..3).for_each(|_| hunger.answered(true, true, 100));
        hunger.failed();
        assert_eq!(hunger.batches(100), 1, "a smaller one may not fail");
    }

    #[test]
    fn large_payloads_are_claimed_by_the_batch() {
        let mut hunger = Hunger::ordered();
        (0..3).for_each(|_| hunger.answered(true, true, 10_000));
        assert_eq!(hunger.batches(100), 5, "twenty batches would be 20 MB");
        (0..3).for_each(|_| hunger.answered(true, true, 1_048_576));
        assert_eq!(hunger.batches(100), 1);
    }
}
