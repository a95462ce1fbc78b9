//! How the programs of a comparison are called, and how they answer. The programs of the peers have this file as a
//! module of theirs, so it needs nothing but the standard library.
//!
//! With `DATABASE_URL`:
//!
//! | arguments | is to | answers |
//! | --- | --- | --- |
//! | `enqueue N` | save so many business rows, each with an event | `rate` |
//! | `drain N WORKERS` | handle a backlog of so many with so many workers | `rate` |
//! | `order N WORKERS` | the same, spread over a hundred keys | `rate inversions` |
//! | `latency RATE SECONDS TROUBLE` | save so many a second and handle them meanwhile | `p50 p99 dead` |
//! | `fill N` | store a backlog and end | |
//! | `work N` | handle what is there, saying the number of each event, until it is killed | |
//!
//! A program says `ready` when everything is prepared, waits for a line, and does what is measured. It answers
//! `answer NAME X NAME Y`, or `cannot` and why.

#![allow(clippy::print_stdout, clippy::cast_precision_loss)]

mod sink;

pub use sink::{Order, Sink, Times};
use std::{
    io::{BufRead, Write},
    time::{Duration, Instant},
};

/// Connections of a pool.
pub const POOL: u32 = 20;
/// Producers that save side by side.
pub const PRODUCERS: u64 = 4;
/// Rows of a batch.
pub const BATCH: u32 = 100;
/// Ordering keys; the event with number n has key n modulo this.
pub const KEYS: u64 = 100;
/// How long a worker owns what it has claimed when it is to be killed.
pub const LEASE: Duration = Duration::from_secs(3);
/// Attempts until a row is dead, and the wait after the first of them.
pub const ATTEMPTS: u32 = 3;
/// The wait after the first failed attempt.
pub const BACKOFF: Duration = Duration::from_millis(200);

/// What a program is to do.
#[derive(Clone, Copy, Debug)]
pub enum Command {
    /// Save so many business rows, each with an event.
    Enqueue(u64),
    /// Handle a backlog of so many with so many workers.
    Drain(u64, usize),
    /// The same in the order of each key.
    Order(u64, usize),
    /// Save at a steady rate, and handle meanwhile.
    Latency(Load),
    /// Store a backlog of so many.
    Fill(u64),
    /// Handle a backlog of so many until killed.
    Work(u64),
}

/// A steady rate.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Events a second.
    pub rate: u64,
    /// For so long.
    pub seconds: u64,
    /// What is wrong with one event in a hundred.
    pub trouble: Trouble,
}

/// What is wrong with one event in a hundred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Nothing.
    None,
    /// Their handler fails every time.
    Fails,
    /// Their handler sleeps until all is over.
    Sleeps,
}

impl Load {
    /// How many there will be.
    pub fn events(self) -> u64 {
        self.rate * self.seconds
    }

    /// The pause between two events.
    pub fn pause(self) -> Duration {
        Duration::from_secs(1) / u32::try_from(self.rate).expect("a rate")
    }
}

impl Command {
    /// How many events it is about.
    pub fn events(self) -> u64 {
        match self {
            Self::Enqueue(n) | Self::Drain(n, _) | Self::Order(n, _) | Self::Fill(n) | Self::Work(n) => n,
            Self::Latency(load) => load.events(),
        }
    }
}

/// What the arguments ask for.
pub fn command(arguments: &[String]) -> Command {
    let number = |n: usize| arguments[n].parse().expect("a number");
    let workers = || usize::try_from(number(2)).expect("a few");
    match arguments[0].as_str() {
        "enqueue" => Command::Enqueue(number(1)),
        "drain" => Command::Drain(number(1), workers()),
        "order" => Command::Order(number(1), workers()),
        "fill" => Command::Fill(number(1)),
        "work" => Command::Work(number(1)),
        "latency" => {
            let trouble = match arguments[3].as_str() {
                "none" => Trouble::None,
                "fails" => Trouble::Fails,
                "sleeps" => Trouble::Sleeps,
                other => panic!("{other} is no trouble"),
            };
            Command::Latency(Load { rate: number(1), seconds: number(2), trouble })
        }
        other => panic!("{other} is no command"),
    }
}

/// Everything is prepared; measured is what follows.
pub fn ready() -> Instant {
    say("ready");
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).expect("a line");
    Instant::now()
}

/// Answers.
pub fn answer(values: &[(&str, f64)]) {
    let words: Vec<_> = values.iter().map(|(name, value)| format!(" {name} {value}")).collect();
    say(&format!("answer{}", words.concat()));
}

/// Answers how many were done a second since then.
pub fn took(events: u64, started: Instant) {
    answer(&[("rate", events as f64 / started.elapsed().as_secs_f64())]);
}

/// Says that this subject cannot do it, and why.
pub fn cannot(why: &str) {
    say(&format!("cannot {why}"));
}

fn say(line: &str) {
    println!("{line}");
    std::io::stdout().flush().expect("somebody listens");
}

/// One in a hundred, and all of one key.
pub fn is_troubled(event: u64) -> bool {
    event.is_multiple_of(KEYS)
}
