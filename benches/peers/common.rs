//! What the programs of the peers share: how they are called, and how they answer.
//!
//! `PROGRAM enqueue N` · `PROGRAM drain N WORKERS` · `PROGRAM latency RATE SECONDS`, with `DATABASE_URL`. A program says
//! `ready` when everything is prepared, waits for a line, does what is measured and says `seconds X` or `p50 X p99 Y`
//! (milliseconds).

#![allow(dead_code)]

use std::{
    io::{BufRead, Write},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::{Duration, Instant},
};

/// Connections of a pool, producers, and rows of a batch: the same for all.
pub const POOL: u32 = 20;
pub const PRODUCERS: u64 = 4;
pub const BATCH: u32 = 100;

pub enum Command {
    Enqueue(u64),
    Drain(u64, usize),
    Latency(u64, u64),
}

pub fn command() -> Command {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let number = |n: usize| arguments[n].parse::<u64>().expect("a number");
    match arguments[0].as_str() {
        "enqueue" => Command::Enqueue(number(1)),
        "drain" => Command::Drain(number(1), number(2) as usize),
        "latency" => Command::Latency(number(1), number(2)),
        other => panic!("{other} is no command"),
    }
}

/// Everything is prepared; measured is what follows.
pub fn ready() -> Instant {
    println!("ready");
    std::io::stdout().flush().expect("somebody listens");
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).expect("a line");
    Instant::now()
}

pub fn took(started: Instant) {
    println!("seconds {}", started.elapsed().as_secs_f64());
}

/// When each event was committed and handled.
pub struct Times {
    started: Instant,
    committed: Vec<AtomicU64>,
    handled: Vec<AtomicU64>,
}

impl Times {
    pub fn new(events: u64) -> Self {
        let zeros = || (0..events).map(|_| AtomicU64::new(0)).collect();
        Self { started: Instant::now(), committed: zeros(), handled: zeros() }
    }

    fn now(&self) -> u64 {
        self.started.elapsed().as_micros() as u64
    }

    pub fn committed(&self, event: u64) {
        self.committed[event as usize].store(self.now(), Relaxed);
    }

    pub fn handled(&self, event: u64) {
        if let Some(time) = self.handled.get(event as usize) {
            time.fetch_max(self.now().max(1), Relaxed);
        }
    }

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

/// The pause between two events of a steady rate.
pub fn pause(rate: u64) -> Duration {
    Duration::from_secs(1) / rate as u32
}
