//! What becomes of the events that the handler of a program gets.

use super::{Command, KEYS, Load, Trouble, answer, is_troubled, say};
use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::{Duration, Instant, SystemTime},
};

/// What becomes of the events that a handler gets.
#[derive(Debug)]
pub enum Sink {
    /// When each was committed and handled.
    Times(Times, Load),
    /// Whether each came after those of its key before it.
    Order(Order),
    /// Its number is said, which outlives this process.
    Lines,
}

impl Sink {
    /// What that command needs.
    pub fn of(command: Command) -> Self {
        match command {
            Command::Latency(load) => Self::Times(Times::new(load.events()), load),
            Command::Order(..) => Self::Order(Order::default()),
            Command::Work(_) | Command::Fill(_) => Self::Lines,
            Command::Enqueue(n) | Command::Drain(n, _) => {
                Self::Times(Times::new(n), Load { rate: n, seconds: 1, trouble: Trouble::None })
            }
        }
    }

    /// How long the handler of this event takes. One that is to be killed is slow enough to be in the middle of a batch.
    pub fn pause(&self, event: u64) -> Duration {
        match self {
            Self::Times(_, load) if load.trouble == Trouble::Sleeps && is_troubled(event) => {
                Duration::from_secs(load.seconds + 60)
            }
            Self::Times(..) | Self::Order(_) => Duration::ZERO,
            Self::Lines => Duration::from_millis(1),
        }
    }

    /// The event has come to its handler, which is to fail when this is false.
    pub fn handled(&self, event: u64) -> bool {
        match self {
            Self::Times(_, load) if load.trouble == Trouble::Fails && is_troubled(event) => return false,
            Self::Times(times, _) => times.handled(event),
            Self::Order(order) => order.handled(event),
            Self::Lines => say(&format!("event {event}")),
        }
        true
    }

    /// Whether so many are handled; those whose handler does not succeed aside.
    pub fn is_done(&self, events: u64) -> bool {
        match self {
            Self::Times(times, load) => times.all_handled(load.trouble != Trouble::None),
            Self::Order(order) => order.handled.load(Relaxed) >= events,
            Self::Lines => false,
        }
    }

    /// The times, where times are taken.
    pub fn times(&self) -> Option<&Times> {
        if let Self::Times(times, _) = self { Some(times) } else { None }
    }

    /// Answers what came of it.
    pub fn tell(&self, command: Command, started: Instant, dead: u64) {
        let rate = command.events() as f64 / started.elapsed().as_secs_f64();
        match (self, command) {
            (Self::Times(times, load), Command::Latency(_)) => {
                let [p50, p99] = times.percentiles(load.trouble != Trouble::None);
                answer(&[("p50", p50), ("p99", p99), ("dead", dead as f64)]);
            }
            (Self::Order(order), _) => {
                answer(&[("rate", rate), ("inversions", order.inversions() as f64)]);
            }
            _ => answer(&[("rate", rate)]),
        }
    }
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

    fn counted(&self, healthy: bool) -> impl Iterator<Item = (&AtomicU64, &AtomicU64)> {
        let pairs = (0_u64..).zip(self.committed.iter().zip(&self.handled));
        pairs.filter(move |(event, _)| !healthy || !is_troubled(*event)).map(|(_, pair)| pair)
    }

    /// Whether every event is handled, or every healthy one.
    pub fn all_handled(&self, healthy: bool) -> bool {
        self.counted(healthy).all(|(_, time)| time.load(Relaxed) > 0)
    }

    /// p50 and p99 in milliseconds. A handler may be faster than the answer to the commit; that is zero.
    pub fn percentiles(&self, healthy: bool) -> [f64; 2] {
        let waited =
            |(from, to): (&AtomicU64, &AtomicU64)| to.load(Relaxed).saturating_sub(from.load(Relaxed));
        let mut all: Vec<_> = self.counted(healthy).map(waited).collect();
        all.sort_unstable();
        [50, 99].map(|part| all[(all.len() * part / 100).min(all.len() - 1)] as f64 / 1000.0)
    }
}

/// Whether the events of each key came in their order.
#[derive(Debug)]
pub struct Order {
    last: Vec<AtomicU64>,
    handled: AtomicU64,
    inversions: AtomicU64,
}

impl Default for Order {
    fn default() -> Self {
        let last = (0..KEYS).map(|_| AtomicU64::new(0)).collect();
        Self { last, handled: AtomicU64::new(0), inversions: AtomicU64::new(0) }
    }
}

impl Order {
    /// The event has come.
    pub fn handled(&self, event: u64) {
        let key = usize::try_from(event % KEYS).expect("a key");
        if self.last[key].fetch_max(event, Relaxed) > event {
            self.inversions.fetch_add(1, Relaxed);
        }
        self.handled.fetch_add(1, Relaxed);
    }

    /// How many came after a later one of their key.
    pub fn inversions(&self) -> u64 {
        self.inversions.load(Relaxed)
    }
}
