//! The protocol that keeps order, in every interleaving.
//!
//! Two relays and an operator work on the rows of a few keys. Each step of a claim is a step of its own (look up, lock
//! lanes, read, lock and claim), and so are each start and end of a handler, each mark, the end of all leases, a take-over
//! and a relay's death. What the core decides it decides here as well; a few lines stand for the SQL, which `model.rs`
//! compares with the model in memory. Unlike there nothing is left to chance: every state that can be reached is visited,
//! and from each the rows must be able to end.

mod search;
mod state;
mod steps;

use search::{Explored, explore};
use state::State;

/// How much there is to explore, and which guards stand.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools)] // Each is a guard of its own.
struct World {
    /// Rows of each key, in the order of their ids.
    keys: &'static [u8],
    /// How often something happens besides that leases end: a handler fails, a relay dies, an operator interferes.
    troubles: u8,
    /// How often leases end; as often as one likes when there is no limit.
    ends: Option<u8>,
    max_attempts: u32,
    /// Whether all keys have one lane.
    shares_lane: bool,
    /// Whether dead letters let their key go on.
    proceeds: bool,
    /// The guards; taking one out must break something.
    dead_letters_block: bool,
    rows_are_read_again: bool,
    failures_end_runs: bool,
    marks_name_tokens: bool,
    lanes_are_locked: bool,
}

const WORLD: World = World {
    keys: &[3],
    troubles: 0,
    ends: None,
    max_attempts: 2,
    shares_lane: false,
    proceeds: false,
    dead_letters_block: true,
    rows_are_read_again: true,
    failures_end_runs: true,
    marks_name_tokens: true,
    lanes_are_locked: true,
};

/// Explores all of it: nothing overtakes, nothing is stranded.
#[track_caller]
fn holds(name: &str, world: World) {
    match explore(&world) {
        Ok(Explored { states, steps, longest }) => {
            eprintln!("{name}: {states} states, {steps} steps, the farthest {longest} steps away");
            // A world in which nothing can happen would hold as well.
            assert!(states > 1_000, "only {states} states");
        }
        Err(broken) => panic!("{name}: {broken}"),
    }
}

/// What happens when a guard is missing.
#[track_caller]
fn breaks(world: World) -> String {
    explore(&world).expect_err("a guard that nothing needs").what
}

#[test]
fn rows_of_a_key_keep_their_order_and_end_whatever_happens() {
    holds("2 rows of a key, leases end, one thing goes wrong", World { keys: &[2], troubles: 1, ..WORLD });
    if enlarged() {
        holds("3 rows of a key, leases end", WORLD);
        holds("3 rows of a key, leases end, one thing goes wrong", World { troubles: 1, ..WORLD });
        holds("2 rows of a key, leases end, two things go wrong", World { keys: &[2], troubles: 2, ..WORLD });
    }
}

#[test]
fn two_keys_keep_their_order_and_hold_up_nobody() {
    let world = World { keys: &[3, 3], ends: Some(0), troubles: 1, ..WORLD };
    holds("3 rows of 2 keys, one thing goes wrong", world);
    holds("3 rows of 2 keys in a lane, one thing goes wrong", World { shares_lane: true, ..world });
    let world = World { keys: &[2, 2], ends: Some(1), troubles: 0, ..WORLD };
    holds("2 rows of 2 keys, leases end once", world);
    if enlarged() {
        holds("3 rows of 2 keys, leases end once", World { keys: &[3, 3], ..world });
        holds("2 rows of 2 keys, leases end once, one thing goes wrong", World { troubles: 1, ..world });
        holds(
            "a row of each of 2 keys, leases end, one thing goes wrong",
            World { keys: &[1, 1], troubles: 1, ..WORLD },
        );
    }
}

#[test]
fn dead_letters_that_may_be_passed_hold_up_nothing() {
    let world = World { keys: &[2], ends: Some(2), proceeds: true, max_attempts: 1, troubles: 1, ..WORLD };
    holds("dead letters proceed", world);
}

/// Rows are read again under their locks, so what lanes save is waiting.
#[test]
fn lanes_are_not_what_keeps_the_order() {
    holds("without lanes", World { keys: &[2], lanes_are_locked: false, ..WORLD });
}

#[test]
fn each_guard_is_needed() {
    let world = World { troubles: 1, ..WORLD };
    let dead = World { dead_letters_block: false, max_attempts: 1, ..world };
    assert_eq!(breaks(dead), "row 1 was handled before row 0");
    let unread = World { rows_are_read_again: false, ..world };
    assert_eq!(breaks(unread), "row 0 was claimed, and it was dead");
    let unread = World { rows_are_read_again: false, lanes_are_locked: false, ..WORLD };
    assert_eq!(breaks(unread), "row 0 was claimed, and it was claimed");
    let running = World { failures_end_runs: false, ..world };
    assert_eq!(breaks(running), "row 1 was handled before row 0");
    let untold = World { marks_name_tokens: false, ..world };
    assert_eq!(breaks(untold), "row 0 was marked by somebody who did not own it");
}

/// Larger worlds take minutes without optimisation.
fn enlarged() -> bool {
    std::env::var_os("OUTBOX_EXPLORE").is_some()
}
