//! What is compared.

use outbox_benches::peers::PRODUCERS;
use std::path::{Path, PathBuf};

/// A program, and what it is told.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    pub(crate) name: String,
    /// Nothing when it could not be built.
    pub(crate) program: Option<PathBuf>,
    /// Says which of the own programs it is.
    pub(crate) start: Vec<String>,
    pub(crate) arguments: Vec<String>,
    pub(crate) events: usize,
    /// Counts the rows that are not settled, where there is one to count.
    pub(crate) unsettled: Option<&'static str>,
}

/// How much there is to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub(crate) rounds: usize,
    pub(crate) rows: usize,
    /// Of a steady rate.
    pub(crate) seconds: usize,
}

/// Events a second of a steady rate.
const RATE: usize = 200;

impl Subject {
    fn own(name: &str, subject: &str, arguments: &[String], events: usize) -> Self {
        Self {
            name: name.to_owned(),
            program: Some(std::env::current_exe().expect("a program")),
            start: ["--as", subject].map(str::to_owned).to_vec(),
            arguments: arguments.to_vec(),
            events,
            unsettled: Some("SELECT count(*) FROM outbox WHERE status <> 'dispatched'"),
        }
    }

    pub(crate) fn is_own(&self) -> bool {
        !self.start.is_empty()
    }

    /// Builds the peers.
    pub(crate) fn peers() -> Vec<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let target = root.parent().expect("a workspace").join("target/peers");
        let build = |(directory, name, unsettled): (&str, &str, Option<&'static str>)| {
            let built = std::process::Command::new("cargo")
                .args(["build", "--release", "--locked", "--quiet"])
                .current_dir(root.join("peers").join(directory))
                .env("CARGO_TARGET_DIR", &target)
                .status();
            let program = target.join("release").join(format!("peer-{directory}"));
            let program = built.is_ok_and(|status| status.success()).then_some(program);
            let (start, arguments) = (Vec::new(), Vec::new());
            Self { name: name.to_owned(), program, start, arguments, events: 0, unsettled }
        };
        let hexeract = "SELECT count(*) FROM hx_outbox WHERE delivered_at IS NULL";
        [
            ("hexeract", "hexeract-outbox 0.6", Some(hexeract)),
            ("obix", "obix 0.16, an event a commit", None),
            ("gears", "cf-gears-toolkit-db 0.17", None),
        ]
        .map(build)
        .to_vec()
    }

    fn told(&self, arguments: &[String], events: usize, more: &str) -> Self {
        Self { name: format!("{}{more}", self.name), arguments: arguments.to_vec(), events, ..self.clone() }
    }

    /// Who takes part in a scenario.
    pub(crate) fn of(scenario: &str, peers: &[Self], size: Size) -> Vec<Self> {
        match scenario {
            "s1" => Self::saving(peers, size.rows / 4),
            "s2" | "s7" => Self::draining(peers, size.rows),
            "s3" | "s5" | "s8" => Self::steady(scenario, peers, size.seconds),
            "s4" => {
                let (told, rows) = (words("work", &[size.rows / 4]), size.rows / 4);
                let mut all = vec![Self::own("ours, lease 3 s", "ours", &told, rows)];
                let leases = [", a batch leased for 3 s", ", lost after 3 s", ", lease 3 s"];
                all.extend(peers.iter().zip(leases).map(|(peer, lease)| peer.told(&told, rows, lease)));
                all
            }
            "s6" => {
                let (told, rows) = (words("order", &[size.rows / 4, 2]), size.rows / 4);
                let mut all = vec![Self::own("ours, 2 relays", "ours", &told, rows)];
                all.extend(peers.iter().map(|peer| peer.told(&told, rows, "")));
                all
            }
            other => panic!("{other} is no scenario"),
        }
    }

    fn saving(peers: &[Self], rows: usize) -> Vec<Self> {
        let told = words("enqueue", &[rows, usize::try_from(PRODUCERS).expect("a few")]);
        let mut all = vec![
            Self::own("raw statements", "raw", &told, rows),
            Self::own("SeaORM alone, without an event", "seaorm", &told, rows),
            Self::own("ours", "ours", &told, rows),
            Self::own("ours, five events", "five", &told, rows),
        ];
        all.extend(peers.iter().map(|peer| peer.told(&told, rows, "")));
        all
    }

    fn draining(peers: &[Self], rows: usize) -> Vec<Self> {
        let drain = |workers| words("drain", &[rows, workers]);
        let mut all: Vec<_> = [1, 2, 4]
            .map(|n| Self::own(&format!("raw statements, {n} client(s)"), "raw", &drain(n), rows))
            .to_vec();
        all.extend([1, 2].map(|n| Self::own(&format!("ours, {n} relay(s)"), "ours", &drain(n), rows)));
        all.extend(peers.iter().map(|peer| peer.told(&drain(1), rows, ", 1 worker")));
        // The others have one worker a log, or one a partition.
        all.extend(peers.iter().take(1).map(|peer| peer.told(&drain(2), rows, ", 2 workers")));
        all
    }

    /// From commit to handler, without trouble and with some.
    fn steady(scenario: &str, peers: &[Self], seconds: usize) -> Vec<Self> {
        let events = RATE * seconds;
        let told = |trouble: &str| {
            let mut told = words("latency", &[RATE, seconds]);
            told.push(trouble.to_owned());
            told
        };
        let own = |name, subject, trouble| Self::own(name, subject, &told(trouble), events);
        let (mut all, troubles): (_, &[_]) = match scenario {
            "s3" => {
                let two = own("ours, two processes, NOTIFY", "notify", "none");
                (vec![own("ours, one process", "ours", "none"), two], &["none"])
            }
            "s5" => {
                let unordered = [own("ours", "ours", "none"), own("ours, 1 % fail", "ours", "fails")];
                let keyed = [
                    own("ours, 100 keys", "keys", "none"),
                    own("ours, one of 100 keys fails", "keys", "fails"),
                ];
                (unordered.into_iter().chain(keyed).collect(), &["none", "fails"])
            }
            _ => {
                let sleeps = own("ours, one of 100 keys sleeps", "keys", "sleeps");
                (vec![own("ours, 100 keys", "keys", "none"), sleeps], &[])
            }
        };
        for peer in peers {
            for trouble in troubles {
                let more = if *trouble == "fails" { ", 1 % fail" } else { "" };
                all.push(peer.told(&told(trouble), events, more));
            }
        }
        all
    }
}

fn words(command: &str, numbers: &[usize]) -> Vec<String> {
    [command.to_owned()].into_iter().chain(numbers.iter().map(ToString::to_string)).collect()
}
