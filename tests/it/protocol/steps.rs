//! What can happen next.

use super::{
    World,
    state::{Claim, Ending, Entry, Relay, Row, Stage, State},
};
use outbox_core::{
    Envelope, ErrorClass, MessageId, RetryPolicy, RowId, Status,
    decide::{
        Expiry, Failure, HandlerReport, RowState, Transition, decide, decide_expired,
        order::{Standing, prefix, rows_per_key},
    },
    row::{ClaimedRow, Progress},
};
use std::{sync::LazyLock, time::Duration};

/// Rows that a claim takes at most: more than there are.
const LIMIT: u32 = 4;

/// A step by its name; relays are told apart by their place in the state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step(&'static str, u8, u8);

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self(name, u8::MAX, u8::MAX) => f.write_str(name),
            Self(name, who, u8::MAX) => write!(f, "relay {who}: {name}"),
            Self(name, u8::MAX, row) => write!(f, "{name} row {row}"),
            Self(name, who, row) => write!(f, "relay {who}: {name} row {row}"),
        }
    }
}

const NONE: u8 = u8::MAX;

type Reached = Result<State, String>;

/// Every step from a state, and where it leads.
pub(super) fn all(world: &World, state: &State) -> Vec<(Step, Reached)> {
    let mut reached = Vec::new();
    for who in 0..2 {
        claims(world, state, who, &mut reached);
        runs(world, state, who, &mut reached);
        take_overs(world, state, who, &mut reached);
        if state.troubles > 0 && state.relays[usize::from(who)] != Relay::default() {
            let mut next = state.clone();
            next.troubles -= 1;
            next.relays[usize::from(who)] = Relay::default();
            reached.push((Step("dies", who, NONE), Ok(next)));
        }
    }
    let next = time_passes(world, state);
    if next != *state && (world.ends.is_none() || state.ends > 0) {
        reached.push((Step("leases end, and what waits is due", NONE, NONE), Ok(next)));
    }
    verbs(state, &mut reached);
    reached
}

fn claims(world: &World, state: &State, who: u8, reached: &mut Vec<(Step, Reached)>) {
    let me = usize::from(who);
    let mut next = state.clone();
    let (name, result) = match &state.relays[me].claim {
        Claim::No => {
            let replays =
                (0_u8..).zip(&state.rows).filter(|(_, row)| row.replay_of.is_some() && row.is_ready());
            let replays: Vec<_> = replays.map(|(id, _)| id).collect();
            let is_ready = |key: &u8| {
                let head = state.of_key(*key).next();
                !state.is_blocked(world, *key)
                    && head.is_some_and(|id| state.rows[usize::from(id)].is_ready())
            };
            let keys: Vec<_> = (0_u8..).zip(world.keys).map(|(key, _)| key).filter(is_ready).collect();
            if keys.is_empty() && replays.is_empty() {
                return;
            }
            next.relays[me].claim = Claim::Planned { keys, replays };
            ("looks up keys", Ok(next))
        }
        Claim::Planned { keys, replays } => {
            let lane = |key: &u8| if world.shares_lane { 0 } else { *key };
            let held: Vec<_> = match &state.relays[1 - me].claim {
                Claim::Locked { keys, .. } | Claim::Read { keys, .. } => keys.iter().map(lane).collect(),
                _ => Vec::new(),
            };
            let is_free = |key: &&u8| !world.lanes_are_locked || !held.contains(&lane(key));
            let keys = keys.iter().filter(is_free).copied().collect();
            next.relays[me].claim = Claim::Locked { keys, replays: replays.clone() };
            ("locks lanes", Ok(next))
        }
        Claim::Locked { keys, replays } => {
            let each = rows_per_key(LIMIT, keys.len());
            let unblocked = keys.iter().filter(|key| !state.is_blocked(world, **key));
            let first = unblocked.flat_map(|key| state.of_key(*key).take(each));
            let rows = replays.iter().copied().chain(first);
            let was_ready = |id| !world.rows_are_read_again && state.rows[usize::from(id)].is_ready();
            let rows = rows.map(|id| (id, was_ready(id))).collect();
            next.relays[me].claim = Claim::Read { keys: keys.clone(), rows };
            ("reads rows", Ok(next))
        }
        Claim::Read { keys, rows } => ("claims", claim(world, next, me, keys, rows)),
    };
    reached.push((Step(name, who, NONE), result));
}

fn claim(world: &World, mut state: State, me: usize, keys: &[u8], rows: &[(u8, bool)]) -> Reached {
    let standing = |(id, was_ready): &(u8, bool)| match state.rows[usize::from(*id)].standing(world.proceeds)
    {
        _ if !world.rows_are_read_again && *was_ready => Standing::Ready,
        _ if !world.rows_are_read_again => Standing::Blocking,
        standing => standing,
    };
    let is_replay = |(id, _): &&(u8, bool)| state.rows[usize::from(*id)].replay_of.is_some();
    let replays = rows.iter().filter(is_replay).filter(|row| standing(row) == Standing::Ready);
    let mut taken: Vec<Vec<u8>> = replays.map(|(id, _)| vec![*id]).collect();
    for key in keys {
        let of_key = |row: &&(u8, bool)| !is_replay(row) && state.rows[usize::from(row.0)].key == *key;
        let of_key: Vec<_> = rows.iter().filter(of_key).collect();
        let standings: Vec<_> = of_key.iter().map(|row| standing(row)).collect();
        taken
            .push(prefix(&standings, rows_per_key(LIMIT, keys.len())).map(|place| of_key[place].0).collect());
    }
    for run in taken {
        let mut entries = Vec::new();
        for id in run {
            let row = &mut state.rows[usize::from(id)];
            if row.status != Status::Pending {
                return Err(format!("row {id} was claimed, and it was {}", row.status));
            }
            entries.push(own(row, id, false));
        }
        state.relays[me].runs.push(entries);
    }
    state.relays[me].claim = Claim::No;
    Ok(state)
}

fn own(row: &mut Row, id: u8, is_isolated: bool) -> Entry {
    row.status = Status::Claimed;
    row.attempts += 1;
    row.is_expired = false;
    row.is_isolated = is_isolated;
    Entry { row: id, attempts: row.attempts, owns: true, in_time: true, stage: Stage::Waiting }
}

/// Whoever held the row holds it no more.
fn disown(relays: &mut [Relay; 2], id: u8) {
    let entries = relays.iter_mut().flat_map(|relay| &mut relay.runs).flatten();
    entries.filter(|entry| entry.row == id).for_each(|entry| entry.owns = false);
}

fn runs(world: &World, state: &State, who: u8, reached: &mut Vec<(Step, Reached)>) {
    for (r, run) in state.relays[usize::from(who)].runs.iter().enumerate() {
        let mut is_first = true;
        for (e, entry) in run.iter().enumerate() {
            let mut step = |name, change: &dyn Fn(&mut State) -> Result<(), String>| {
                let mut next = state.clone();
                let result = change(&mut next).map(|()| next);
                reached.push((Step(name, who, entry.row), result));
            };
            let place = (usize::from(who), r, e);
            match entry.stage {
                Stage::Waiting if is_first && entry.in_time => step("starts", &|next| {
                    start(next, place);
                    Ok(())
                }),
                Stage::Waiting if is_first => step("is too late for", &|next| {
                    end(world, next, place, Ending::Release);
                    Ok(())
                }),
                Stage::Running => {
                    step("succeeds at", &|next| succeed(world, next, place));
                    if state.troubles > 0 && entry.owns {
                        step("fails at", &|next| {
                            next.troubles -= 1;
                            end(world, next, place, failed(world, entry.attempts));
                            Ok(())
                        });
                    }
                }
                Stage::Ended(ending) => step("marks", &|next| mark(world, next, place, ending)),
                Stage::Waiting | Stage::Marked => {}
            }
            // The next one starts once this one has succeeded; if it has not, the next one has ended with it.
            is_first &= matches!(entry.stage, Stage::Ended(_) | Stage::Marked);
        }
    }
}

type Place = (usize, usize, usize);

fn start(state: &mut State, (who, run, entry): Place) {
    state.relays[who].runs[run][entry].stage = Stage::Running;
}

fn succeed(world: &World, state: &mut State, place: Place) -> Result<(), String> {
    let (who, run, entry) = place;
    let Entry { row: id, owns, in_time, .. } = state.relays[who].runs[run][entry];
    let row = &state.rows[usize::from(id)];
    if row.is_handled && !row.may_repeat {
        return Err(format!("row {id} was handled twice, and no lease was lost"));
    }
    if !row.is_handled
        && let Some(earlier) = state.overtaken_by(world, id)
    {
        return Err(format!("row {id} was handled before row {earlier}"));
    }
    let row = &mut state.rows[usize::from(id)];
    row.is_handled = true;
    row.may_repeat |= !owns || !in_time;
    end(world, state, place, Ending::Dispatched);
    Ok(())
}

/// A row that was not dispatched ends the run: what follows is given back.
fn end(world: &World, state: &mut State, (who, run, entry): Place, ending: Ending) {
    let run = &mut state.relays[who].runs[run];
    run[entry].stage = Stage::Ended(ending);
    if ending != Ending::Dispatched && world.failures_end_runs {
        run[entry + 1..].iter_mut().for_each(|entry| entry.stage = Stage::Ended(Ending::Release));
    }
}

fn mark(world: &World, state: &mut State, (who, run, entry): Place, ending: Ending) -> Result<(), String> {
    let entry = &mut state.relays[who].runs[run][entry];
    entry.stage = Stage::Marked;
    let (id, owns) = (entry.row, entry.owns);
    if !owns && world.marks_name_tokens {
        return Ok(());
    }
    if !owns {
        return Err(format!("row {id} was marked by somebody who did not own it"));
    }
    disown(&mut state.relays, id);
    let row = &mut state.rows[usize::from(id)];
    (row.is_expired, row.is_isolated) = (false, false);
    match ending {
        Ending::Dispatched => {
            row.status = Status::Dispatched;
            let mut next = row.replay_of;
            while let Some(dead) = next.map(|id| &mut state.rows[usize::from(id)]) {
                dead.is_resolved = true;
                next = dead.replay_of;
            }
        }
        Ending::Dead => row.status = Status::Dead,
        Ending::Retry => (row.status, row.is_due) = (Status::Pending, false),
        Ending::Release => {
            row.status = Status::Pending;
            row.attempts = row.attempts.saturating_sub(1);
        }
    }
    Ok(())
}

/// A relay with nothing to do takes over the first row of a key, or a replay, whose lease has ended.
fn take_overs(world: &World, state: &State, who: u8, reached: &mut Vec<(Step, Reached)>) {
    let me = usize::from(who);
    if !state.relays[me].runs.is_empty() || state.relays[me].claim != Claim::No {
        return;
    }
    let replays = (0_u8..).zip(&state.rows).filter(|(_, row)| row.replay_of.is_some()).map(|(id, _)| id);
    let keys = (0_u8..).zip(world.keys).map(|(key, _)| key).filter(|key| !state.is_blocked(world, *key));
    for id in replays.chain(keys.filter_map(|key| state.of_key(key).next())) {
        let row = &state.rows[usize::from(id)];
        if row.status != Status::Claimed || !row.is_expired {
            continue;
        }
        let mut next = state.clone();
        disown(&mut next.relays, id);
        let row = &mut next.rows[usize::from(id)];
        match decide_expired(row.attempts.into(), row.is_isolated, world.max_attempts) {
            Expiry::RunAlone => {
                let entry = own(row, id, true);
                next.relays[me].runs.push(vec![entry]);
            }
            Expiry::Dead => (row.status, row.is_expired, row.is_isolated) = (Status::Dead, false, false),
        }
        reached.push((Step("takes over", who, id), Ok(next)));
    }
}

fn time_passes(world: &World, state: &State) -> State {
    let mut next = state.clone();
    next.ends = if world.ends.is_some() { state.ends.saturating_sub(1) } else { 0 };
    for row in &mut next.rows {
        row.is_due = true;
        row.is_expired = row.status == Status::Claimed;
        row.may_repeat |= row.is_expired && row.is_handled;
    }
    for entry in next.relays.iter_mut().flat_map(|relay| &mut relay.runs).flatten() {
        entry.in_time = false;
    }
    next
}

/// What an operator does. A dead letter can always be skipped; the rest is done now and then.
fn verbs(state: &State, reached: &mut Vec<(Step, Reached)>) {
    for id in (0_u8..).zip(&state.rows).map(|(id, _)| id) {
        let mut verb = |name, rule: fn(RowState) -> Result<(), &'static str>, change: &dyn Fn(&mut State)| {
            if rule(state.row_state(id)).is_ok() {
                let mut next = state.clone();
                change(&mut next);
                reached.push((Step(name, NONE, id), Ok(next)));
            }
        };
        let row = &state.rows[usize::from(id)];
        if row.status == Status::Dead || state.troubles > 0 {
            verb("the operator skips", RowState::skip, &|next| {
                next.troubles -= u8::from(row.status != Status::Dead);
                let mut skipped = Some(id);
                while let Some(row) = skipped.map(|id| &mut next.rows[usize::from(id)]) {
                    (row.status, row.is_resolved) = (Status::Dead, true);
                    skipped = row.replay_of;
                }
            });
        }
        if state.troubles > 0 {
            verb("the operator replays", RowState::replay, &|next| {
                next.troubles -= 1;
                next.rows.push(Row { replay_of: Some(id), ..Row::pending(row.key) });
            });
            verb("the operator releases", RowState::release, &|next| {
                next.troubles -= 1;
                disown(&mut next.relays, id);
                let row = &mut next.rows[usize::from(id)];
                (row.status, row.is_expired, row.is_isolated) = (Status::Pending, false, false);
            });
            if !row.is_due {
                verb("the operator makes due", RowState::retry_now, &|next| {
                    next.troubles -= 1;
                    next.rows[usize::from(id)].is_due = true;
                });
            }
        }
    }
}

/// What the core decides of a row whose handler failed.
fn failed(world: &World, attempts: u8) -> Ending {
    static ROW: LazyLock<ClaimedRow> = LazyLock::new(|| ClaimedRow {
        id: RowId(1),
        envelope: Envelope::stored(MessageId::new(), "protocol.event".into(), 1, "{}".into()),
        attempts: 1,
        claims: 1,
        progress: Progress::new(),
        replay_of: None,
    });
    let policy = RetryPolicy { max_attempts: world.max_attempts, ..RetryPolicy::default() };
    let row = ClaimedRow { attempts: attempts.into(), ..ROW.clone() };
    let failure = Failure { retry_after: Some(Duration::ZERO), ..Failure::new(ErrorClass::Transient, "no") };
    let report = HandlerReport { handler: Some("protocol.handle".to_owned()), result: Err(failure) };
    match decide(&row, &[report], &policy, 0.5) {
        Transition::Retry { .. } => Ending::Retry,
        Transition::Dead(_) => Ending::Dead,
        other => unreachable!("{other:?}"),
    }
}
