//! When to look for rows with an expired lease, and what may run meanwhile.
//!
//! Such a row may have killed its relay, so it runs with nothing beside it: a crash can then be laid at its door, and
//! nobody else's row dies with it. Such rows have a turn of a second, and then one ordinary batch has one, so neither kind
//! starves the other.

use std::time::Duration;
use tokio::time::Instant;

/// Shortest and longest wait between two looks.
const LOOK: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// How long rows that run alone have their turn.
const TURN: Duration = Duration::from_secs(1);

/// The longest wait for running handlers, during which nothing is claimed.
const MAX_PATIENCE: Duration = Duration::from_secs(30);

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
    turn_ends: Instant,
    /// How long running handlers are waited for, and until when.
    patience: Duration,
    patience_ends: Instant,
}

impl Expired {
    pub(crate) fn new(lease: Duration) -> Self {
        let interval = (lease / 4).clamp(LOOK.0, LOOK.1);
        let now = Instant::now();
        let patience = lease.min(MAX_PATIENCE);
        Self {
            turn: Turn::Ordinary,
            due: now,
            interval,
            look_after_claim: false,
            turn_ends: now,
            patience,
            patience_ends: now,
        }
    }

    pub(crate) fn allows_claims(&self) -> bool {
        self.turn == Turn::Ordinary
    }

    /// When to look next. A row that runs alone is waited for; one that is waited for may meanwhile be somebody else's.
    pub(crate) fn look_at(&self, is_idle: bool) -> Option<Instant> {
        match self.turn {
            Turn::Ordinary => Some(self.due),
            Turn::Draining => Some(if is_idle { Instant::now() } else { self.due }),
            Turn::Alone => is_idle.then(Instant::now),
        }
    }

    /// Whether what runs takes so long that an expired row has to run beside it. It does not count as alone then, so
    /// it cannot die of a crash that was not its own.
    pub(crate) fn is_out_of_patience(&self) -> bool {
        self.turn == Turn::Draining && Instant::now() >= self.patience_ends
    }

    /// A look while others ran.
    pub(crate) fn noted(&mut self, waiting: bool) {
        if !waiting {
            self.turn = Turn::Ordinary;
        } else if self.turn == Turn::Ordinary {
            self.begin_turn();
            self.turn = Turn::Draining;
            self.patience_ends = Instant::now() + self.patience;
        }
        self.later();
    }

    /// An ordinary batch has its turn before the next look.
    pub(crate) fn ordinary_turn(&mut self) {
        self.turn = Turn::Ordinary;
        self.look_after_claim = true;
        self.later();
    }

    /// A look while nothing ran.
    pub(crate) fn took_over(&mut self, found: bool) {
        if found {
            self.begin_turn();
            self.turn = Turn::Alone;
            self.due = Instant::now();
        } else {
            self.turn = Turn::Ordinary;
            self.later();
        }
    }

    fn begin_turn(&mut self) {
        if self.turn == Turn::Ordinary {
            self.turn_ends = Instant::now() + TURN;
        }
    }

    /// Whether the turn of rows that run alone is over: then an ordinary batch has its own.
    pub(crate) fn ended_alone(&mut self) -> bool {
        let ended = self.turn == Turn::Alone && Instant::now() >= self.turn_ends;
        if ended {
            self.ordinary_turn();
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
