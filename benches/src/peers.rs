//! How the programs of a comparison are called, and how they answer; `peers/common.rs` says the same for the peers.
//!
//! `PROGRAM enqueue N` · `PROGRAM drain N WORKERS` · `PROGRAM latency RATE SECONDS`, with `DATABASE_URL`. A program says
//! `ready` when everything is prepared, waits for a line, does what is measured and says `rate X` (or `seconds X`) or
//! `p50 X p99 Y` (milliseconds).

#![allow(clippy::print_stdout, clippy::cast_precision_loss)]

use std::{
    io::{BufRead, Write},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::SystemTime,
};

/// Producers that save side by side.
pub const PRODUCERS: u64 = 4;

/// What a program is to do.
#[derive(Clone, Copy, Debug)]
pub enum Command {
    /// Save so many business rows, each with an event.
    Enqueue(u64),
    /// Handle a backlog of so many with so many relays.
    Drain(u64, usize),
    /// Save so many a second for so many seconds, and handle them meanwhile.
    Latency(u64, u64),
}

/// What the arguments ask for.
pub fn command(arguments: &[String]) -> Command {
    let number = |n: usize| arguments[n].parse().expect("a number");
    match arguments[0].as_str() {
        "enqueue" => Command::Enqueue(number(1)),
        "drain" => Command::Drain(number(1), usize::try_from(number(2)).expect("a few")),
        "latency" => Command::Latency(number(1), number(2)),
        other => panic!("{other} is no command"),
    }
}

/// Everything is prepared; measured is what follows.
pub fn ready() {
    println!("ready");
    std::io::stdout().flush().expect("somebody listens");
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).expect("a line");
}

/// When each event was committed and handled.
#[derive(Debug)]
pub struct Times {
    committed: Vec<AtomicU64>,
    handled: Vec<AtomicU64>,
}

impl Times {
    /// For so many events, by their numbers.
    pub fn new(events: u64) -> Self {
        let zeros = || (0..events).map(|_| AtomicU64::new(0)).collect();
        Self { committed: zeros(), handled: zeros() }
    }

    /// Microseconds by the clock that the processes of a machine share.
    pub fn now() -> u64 {
        let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a clock");
        u64::try_from(time.as_micros()).expect("a time")
    }

    /// The event is committed.
    pub fn committed(&self, event: u64) {
        self.committed_at(event, Self::now());
    }

    /// The event was committed then.
    pub fn committed_at(&self, event: u64, time: u64) {
        self.committed[usize::try_from(event).expect("a number")].store(time, Relaxed);
    }

    /// The event is handled.
    pub fn handled(&self, event: u64) {
        if let Some(time) = self.handled.get(usize::try_from(event).expect("a number")) {
            time.store(Self::now(), Relaxed);
        }
    }

    /// Whether every event is handled.
    pub fn all_handled(&self) -> bool {
        self.handled.iter().all(|time| time.load(Relaxed) > 0)
    }

    /// Tells the percentiles. A handler may be faster than the answer to the commit; that is zero.
    pub fn tell(&self) {
        let pairs = self.committed.iter().zip(&self.handled);
        let mut all: Vec<_> =
            pairs.map(|(from, to)| to.load(Relaxed).saturating_sub(from.load(Relaxed))).collect();
        all.sort_unstable();
        let at = |part: usize| all[(all.len() * part / 100).min(all.len() - 1)] as f64 / 1000.0;
        println!("p50 {} p99 {}", at(50), at(99));
    }
}
