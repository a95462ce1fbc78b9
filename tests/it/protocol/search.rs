//! Breadth first through every state that can be reached.

use super::{State, World, steps, steps::Step};
use std::{
    collections::{HashMap, hash_map::Entry},
    fmt,
};

#[derive(Debug)]
pub(super) struct Explored {
    pub(super) states: usize,
    pub(super) steps: usize,
    /// Steps to the state that is farthest away.
    pub(super) longest: usize,
}

/// What must not happen, and how it came to it by the fewest steps.
#[derive(Debug)]
pub(super) struct Broken {
    pub(super) what: String,
    trace: Vec<String>,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, after\n  {}", self.what, self.trace.join("\n  "))
    }
}

/// A state: where it was first reached from, by what, and after how many steps.
struct Seen {
    from: usize,
    step: Option<Step>,
    depth: usize,
}

/// Visits everything; ends at the first thing that must not happen.
pub(super) fn explore(world: &World) -> Result<Explored, Broken> {
    let initial = State::initial(world);
    let mut numbers = HashMap::from([(initial.clone(), 0)]);
    let mut states = vec![initial];
    let mut seen = vec![Seen { from: 0, step: None, depth: 0 }];
    let mut edges: Vec<(u32, u32)> = Vec::new();
    let (mut next, mut count) = (0, 0);
    while next < states.len() {
        for (step, reached) in steps::all(world, &states[next]) {
            let reached = match reached {
                Ok(state) => state.normal(world),
                Err(what) => return Err(Broken { what, trace: trace(&seen, next, Some(step)) }),
            };
            let number = match numbers.entry(reached) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(new) => {
                    let number = states.len();
                    states.push(new.key().clone());
                    seen.push(Seen { from: next, step: Some(step), depth: seen[next].depth + 1 });
                    *new.insert(number)
                }
            };
            count += 1;
            if world.ends.is_none() {
                edges.push((to_u32(next), to_u32(number)));
            }
        }
        next += 1;
    }
    // Where leases end only so often, what is left behind is left for ever.
    if world.ends.is_none()
        && let Some(stranded) = stranded(&states, &edges)
    {
        let what = format!("nothing brings these rows to their end: {:?}", states[stranded].rows);
        return Err(Broken { what, trace: trace(&seen, stranded, None) });
    }
    let longest = seen.iter().map(|seen| seen.depth).max().unwrap_or_default();
    Ok(Explored { states: states.len(), steps: count, longest })
}

fn to_u32(number: usize) -> u32 {
    u32::try_from(number).expect("fewer than four billion states")
}

/// A state from which no steps lead to the end of all rows.
fn stranded(states: &[State], edges: &[(u32, u32)]) -> Option<usize> {
    let mut sources: Vec<Vec<u32>> = vec![Vec::new(); states.len()];
    for (from, to) in edges {
        sources[*to as usize].push(*from);
    }
    let mut ends: Vec<bool> = states.iter().map(State::is_finished).collect();
    let mut next: Vec<usize> = (0..states.len()).filter(|state| ends[*state]).collect();
    while let Some(state) = next.pop() {
        for source in &sources[state] {
            let source = *source as usize;
            if !std::mem::replace(&mut ends[source], true) {
                next.push(source);
            }
        }
    }
    ends.iter().position(|ends| !ends)
}

fn trace(seen: &[Seen], mut state: usize, last: Option<Step>) -> Vec<String> {
    let mut steps: Vec<_> = last.into_iter().collect();
    while state > 0 {
        steps.extend(seen[state].step);
        state = seen[state].from;
    }
    steps.iter().rev().map(Step::to_string).collect()
}
