//! What there is at one moment.

use super::World;
use outbox_core::{
    Status,
    decide::{RowState, order::Standing},
};

/// A row as the database has it. Clocks are told by whether something is due or over.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::struct_excessive_bools)] // The columns of a row.
pub(super) struct Row {
    pub(super) key: u8,
    pub(super) status: Status,
    pub(super) attempts: u8,
    pub(super) is_due: bool,
    /// Its lease has ended.
    pub(super) is_expired: bool,
    pub(super) is_isolated: bool,
    pub(super) is_resolved: bool,
    pub(super) replay_of: Option<u8>,
    /// Its handler has succeeded.
    pub(super) is_handled: bool,
    /// Its owner lost it afterwards, or had lost it before.
    pub(super) may_repeat: bool,
}

/// A relay, and what it believes to own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Relay {
    pub(super) claim: Claim,
    /// The rows of a key that were claimed together, in order.
    pub(super) runs: Vec<Vec<Entry>>,
}

/// How far a claim has come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Claim {
    #[default]
    No,
    /// Keys to claim from, and replays.
    Planned { keys: Vec<u8>, replays: Vec<u8> },
    /// The same, with the lanes of the keys locked.
    Locked { keys: Vec<u8>, replays: Vec<u8> },
    /// The first rows of the keys; whether each was ready then is of interest to those who do not look again.
    Read { keys: Vec<u8>, rows: Vec<(u8, bool)> },
}

/// A row in a relay's memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Entry {
    pub(super) row: u8,
    pub(super) attempts: u8,
    /// Its token is still the row's.
    pub(super) owns: bool,
    /// The relay's own clock says that the lease holds.
    pub(super) in_time: bool,
    pub(super) stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Stage {
    Waiting,
    Running,
    Ended(Ending),
    Marked,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Ending {
    Dispatched,
    Retry,
    Dead,
    Release,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct State {
    pub(super) rows: Vec<Row>,
    pub(super) relays: [Relay; 2],
    /// How much may still go wrong.
    pub(super) troubles: u8,
    /// How often leases may still end; counted only where that is limited.
    pub(super) ends: u8,
}

impl Row {
    pub(super) fn pending(key: u8) -> Self {
        Self {
            key,
            status: Status::Pending,
            attempts: 0,
            is_due: true,
            is_expired: false,
            is_isolated: false,
            is_resolved: false,
            replay_of: None,
            is_handled: false,
            may_repeat: false,
        }
    }

    pub(super) fn is_live(&self) -> bool {
        matches!(self.status, Status::Pending | Status::Claimed)
    }

    pub(super) fn is_ready(&self) -> bool {
        self.status == Status::Pending && self.is_due
    }

    pub(super) fn standing(&self, proceeds: bool) -> Standing {
        match self.status {
            _ if self.is_ready() => Standing::Ready,
            Status::Dispatched => Standing::Finished,
            Status::Dead if self.is_resolved || proceeds => Standing::Finished,
            _ => Standing::Blocking,
        }
    }

    fn is_owed(&self) -> bool {
        self.is_live() || (self.status == Status::Dead && !self.is_resolved)
    }
}

impl State {
    pub(super) fn initial(world: &World) -> Self {
        let keys = (0_u8..).zip(world.keys);
        let rows = keys.flat_map(|(key, rows)| (0..*rows).map(move |_| Row::pending(key))).collect();
        Self { rows, relays: Default::default(), troubles: world.troubles, ends: world.ends.unwrap_or(0) }
    }

    /// Nothing is owed any more.
    pub(super) fn is_finished(&self) -> bool {
        !self.rows.iter().any(Row::is_owed)
    }

    /// States that differ in the names of the relays are one, and so are those that differ in what will change nothing:
    /// whoever has lost a row can neither start nor mark it, and can handle it for the first time at most.
    ///
    /// Attempts beyond those that are allowed are counted as one more: all of them are too many.
    pub(super) fn normal(mut self, world: &World) -> Self {
        let too_many = u8::try_from(world.max_attempts).map_or(u8::MAX, |most| most + 1);
        for row in &mut self.rows {
            row.attempts = row.attempts.min(too_many);
            row.may_repeat &= row.is_live();
        }
        for relay in &mut self.relays {
            let rows = &self.rows;
            let matters = |entry: &Entry| match entry.stage {
                Stage::Marked => false,
                _ if entry.owns || !world.marks_name_tokens => true,
                stage => stage == Stage::Running && !rows[usize::from(entry.row)].is_handled,
            };
            for run in &mut relay.runs {
                run.retain(matters);
                for entry in run {
                    entry.attempts = if entry.owns { entry.attempts.min(too_many) } else { 0 };
                }
            }
            relay.runs.retain(|run| !run.is_empty());
            relay.runs.sort();
            relay.runs.dedup();
            if let Claim::Locked { keys, replays } = &relay.claim
                && keys.is_empty()
                && replays.is_empty()
            {
                relay.claim = Claim::No;
            }
        }
        self.relays.sort();
        self
    }

    /// The live rows of a key, without replays.
    pub(super) fn of_key(&self, key: u8) -> impl Iterator<Item = u8> {
        let is_of_key = move |row: &Row| row.key == key && row.is_live() && row.replay_of.is_none();
        (0_u8..).zip(&self.rows).filter(move |(_, row)| is_of_key(row)).map(|(id, _)| id)
    }

    /// Whether a dead letter holds up a key.
    pub(super) fn is_blocked(&self, world: &World, key: u8) -> bool {
        let blocks = |row: &Row| row.key == key && row.status == Status::Dead && !row.is_resolved;
        world.dead_letters_block && !world.proceeds && self.rows.iter().any(blocks)
    }

    /// What an operator's verb asks.
    pub(super) fn row_state(&self, id: u8) -> RowState {
        let row = &self.rows[usize::from(id)];
        RowState {
            status: row.status,
            resolved: row.is_resolved,
            replayed: self.rows.iter().any(|row| row.replay_of == Some(id)),
            lease_expired: row.status == Status::Claimed && row.is_expired,
        }
    }

    /// A row that had to come before this one, and did not.
    pub(super) fn overtaken_by(&self, world: &World, id: u8) -> Option<u8> {
        let row = &self.rows[usize::from(id)];
        let came_before = |other: &Row| {
            let passes = world.proceeds && other.status == Status::Dead;
            other.key != row.key
                || other.replay_of.is_some()
                || other.is_handled
                || other.is_resolved
                || passes
        };
        let earlier = (0..id).zip(&self.rows).filter(|_| row.replay_of.is_none());
        earlier.into_iter().find(|(_, other)| !came_before(other)).map(|(id, _)| id)
    }
}
