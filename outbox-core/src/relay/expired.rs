//! When to look for rows with an expired lease, and what may run meanwhile.
//!
//! Such a row may have killed its relay, so it runs with nothing beside it: a crash can then be laid at its door, and
//! nobody else's row dies with it. Between two such rows one ordinary batch runs, so neither kind starves the other.

use std::time::Duration;
use tokio::time::Instant;

/// Shortest and longest wait between two looks.
const LOOK: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// Ordinary rows run; the next look is due at some time.
    Ordinary,
    /// An expired row waits until nothing runs.
    Draining,
    /// An expired row runs, alone.
    Alone,
}

#[derive(Debug)]
pub(crate) struct Expired {
    turn: Turn,
    due: Instant,
    interval: Duration,
    look_after_claim: bool,
}

impl Expired {
    pub(crate) fn new(lease: Duration) -> Self {
        let interval = (lease / 4).clamp(LOOK.0, LOOK.1);
        Self { turn: Turn::Ordinary, due: Instant::now(), interval, look_after_claim: false }
    }

    pub(crate) fn allows_claims(&self) -> bool {
        self.turn == Turn::Ordinary
    }

    /// Whether a look makes sense only once nothing runs.
    pub(crate) fn waits_for_drain(&self) -> bool {
        self.turn != Turn::Ordinary
    }

    pub(crate) fn due(&self) -> Instant {
        self.due
    }

    /// A look while others ran.
    pub(crate) fn noted(&mut self, waiting: bool) {
        if waiting {
            self.turn = Turn::Draining;
            self.due = Instant::now();
        } else {
            self.later();
        }
    }

    /// A look while nothing ran.
    pub(crate) fn took_over(&mut self, found: bool) {
        if found {
            self.turn = Turn::Alone;
            self.due = Instant::now();
        } else {
            self.turn = Turn::Ordinary;
            self.later();
        }
    }

    /// Whether the row that ran alone has just ended: then an ordinary batch has its turn before the next look.
    pub(crate) fn ended_alone(&mut self) -> bool {
        let ended = self.turn == Turn::Alone;
        if ended {
            self.turn = Turn::Ordinary;
            self.look_after_claim = true;
            self.later();
        }
        ended
    }

    /// An ordinary batch was claimed.
    pub(crate) fn claimed(&mut self) {
        if std::mem::take(&mut self.look_after_claim) {
            self.due = Instant::now();
        }
    }

    pub(crate) fn failed(&mut self) {
        self.later();
    }

    fn later(&mut self) {
        self.due = Instant::now() + self.interval;
    }
}
