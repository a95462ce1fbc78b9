//! Which rows of an ordering key may be claimed.
//!
//! What is kept, for each key on its own: a row is not dispatched before every row of the key that was stored before it
//! is dispatched, or resolved. Ids tell which was stored before, because they are given out under the key's lock.
//!
//! * The rows of a claim are an unbroken prefix of the key's live rows, and the first row that is not dispatched ends
//!   the run: what follows is given back.
//! * A dead letter blocks its key until it is resolved, unless its event says `on_dead = proceed`. Its replay goes
//!   first: it may be claimed whatever else the key holds, and nothing else of the key may.
//! * A row that the relay does not read blocks its key for that relay.
//! * What a key keeps is the order of first completions. An owner that lost its lease can repeat what it had begun, and
//!   is told apart by `claims`.

/// What a claimer sees of one row, when nobody else can change it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Pending and due, and the relay reads it.
    Ready,
    /// Dispatched, or a resolved dead letter: it holds up nothing.
    Finished,
    /// Anything else: in flight, in backoff, not read here, or a dead letter that blocks.
    Blocking,
}

/// How many rows at the beginning of a key's rows, in the order of their ids, may be looked at for a claim, and which of
/// them are to be claimed: at most `limit`.
pub fn prefix(rows: &[Standing], limit: usize) -> impl Iterator<Item = usize> {
    let unblocked = rows.iter().take_while(|standing| **standing != Standing::Blocking).enumerate();
    unblocked.filter(|(_, standing)| **standing == Standing::Ready).map(|(place, _)| place).take(limit)
}

/// How many rows of each key a claim takes, so that the claim is full when enough keys have enough rows.
pub fn rows_per_key(limit: u32, keys: usize) -> usize {
    (limit as usize).div_ceil(keys.max(1))
}

#[cfg(test)]
mod tests {
    use super::{Standing::*, *};

    #[test]
    fn a_run_ends_at_the_first_row_that_blocks() {
        let claimed = |rows: &[Standing], limit| prefix(rows, limit).collect::<Vec<_>>();
        assert_eq!(claimed(&[Ready, Ready, Blocking, Ready], 9), [0, 1]);
        assert_eq!(claimed(&[Finished, Ready, Finished, Ready], 9), [1, 3]);
        assert_eq!(claimed(&[Ready, Ready, Ready], 2), [0, 1]);
        assert_eq!(claimed(&[Blocking, Ready], 9), [0; 0]);
        assert_eq!(claimed(&[], 9), [0; 0]);
    }

    #[test]
    fn a_claim_is_spread_over_its_keys() {
        assert_eq!([rows_per_key(100, 1), rows_per_key(100, 10), rows_per_key(100, 100)], [100, 10, 1]);
        assert_eq!([rows_per_key(10, 3), rows_per_key(10, 0)], [4, 10]);
    }
}
