//! What is compared, and how one of them is run.

use outbox_benches::peers::PRODUCERS;
use sea_orm::{
    ConnectOptions, ConnectionTrait, Database, DatabaseConnection, DbBackend, IsolationLevel, Statement,
    TransactionTrait,
};
use std::{
    fmt,
    path::{Path, PathBuf},
    process::Stdio,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::Command,
};

/// A program, and what it is told.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    pub(crate) name: String,
    /// Nothing when it could not be built.
    program: Option<PathBuf>,
    arguments: Vec<String>,
    events: usize,
}

/// What came of a run: a rate or two percentiles, and what it cost the database.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    pub(crate) first: f64,
    pub(crate) second: f64,
    pub(crate) wal: f64,
    pub(crate) transactions: f64,
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:>9.1} {:>9.1} {:>7.0} B {:>6.2} tx",
            self.first, self.second, self.wal, self.transactions
        )
    }
}

impl Subject {
    fn own(name: &str, subject: &str, arguments: &[String], events: usize) -> Self {
        let program = Some(std::env::current_exe().expect("a program"));
        let start = ["--as", subject].map(str::to_owned);
        Self {
            name: name.to_owned(),
            program,
            arguments: start.iter().chain(arguments).cloned().collect(),
            events,
        }
    }

    /// Builds the peers.
    pub(crate) fn peers() -> Vec<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let target = root.parent().expect("a workspace").join("target/peers");
        let build = |(directory, name): (&str, &str)| {
            let built = std::process::Command::new("cargo")
                .args(["build", "--release", "--locked", "--quiet"])
                .current_dir(root.join("peers").join(directory))
                .env("CARGO_TARGET_DIR", &target)
                .status();
            let program = target.join("release").join(format!("peer-{directory}"));
            let program = built.is_ok_and(|status| status.success()).then_some(program);
            Self { name: name.to_owned(), program, arguments: Vec::new(), events: 0 }
        };
        [
            ("hexeract", "hexeract-outbox 0.6"),
            ("obix", "obix 0.16, an event a commit"),
            ("gears", "cf-gears-toolkit-db 0.17"),
        ]
        .map(build)
        .to_vec()
    }

    /// Who takes part in a scenario.
    pub(crate) fn of(scenario: &str, peers: &[Self], rows: usize) -> Vec<Self> {
        let told =
            |command: &str, n: usize, more: usize| [command.to_owned(), n.to_string(), more.to_string()];
        let of_peers = |arguments: [String; 3], events: usize, name: &'static str| {
            let named = move |peer: &Self| Self {
                name: format!("{}{name}", peer.name),
                arguments: arguments.to_vec(),
                events,
                ..peer.clone()
            };
            peers.iter().map(named).collect::<Vec<_>>()
        };
        let producers = usize::try_from(PRODUCERS).expect("a few");
        match scenario {
            "s1" => {
                let rows = rows / 4;
                let told = told("enqueue", rows, producers);
                let mut all = vec![
                    Self::own("raw statements", "raw", &told, rows),
                    Self::own("SeaORM alone, without an event", "seaorm", &told, rows),
                    Self::own("ours", "ours", &told, rows),
                    Self::own("ours, five events", "five", &told, rows),
                ];
                all.extend(of_peers(told, rows, ""));
                all
            }
            "s3" => {
                let told = told("latency", 200, 10);
                let mut all = vec![
                    Self::own("ours, one process", "ours", &told, 2_000),
                    Self::own("ours, two processes, NOTIFY", "notify", &told, 2_000),
                ];
                all.extend(of_peers(told, 2_000, ""));
                all
            }
            _ => {
                let drain = |workers| told("drain", rows, workers);
                let mut all: Vec<_> = [1, 2, 4]
                    .map(|n| Self::own(&format!("raw statements, {n} client(s)"), "raw", &drain(n), rows))
                    .to_vec();
                all.extend(
                    [1, 2].map(|n| Self::own(&format!("ours, {n} relay(s)"), "ours", &drain(n), rows)),
                );
                all.extend(of_peers(drain(1), rows, ", 1 worker"));
                all.extend(of_peers(drain(2), rows, ", 2 workers").into_iter().take(1));
                all
            }
        }
    }
}

/// The server on which all of them run.
pub(crate) struct Server {
    db: DatabaseConnection,
    url: String,
}

impl Server {
    pub(crate) async fn connect(url: &str) -> Self {
        let mut options = ConnectOptions::new(url);
        options.max_connections(2).sqlx_logging(false);
        let db = Database::connect(options).await.expect("a PostgreSQL server");
        assert_eq!(db.get_database_backend(), DbBackend::Postgres, "the comparison is made on PostgreSQL");
        Self { db, url: url.to_owned() }
    }

    async fn number(&self, sql: &str) -> f64 {
        let statement =
            Statement::from_string(DbBackend::Postgres, format!("SELECT CAST(({sql}) AS double precision)"));
        let row = self.db.query_one_raw(statement).await.expect("an answer").expect("a row");
        row.try_get_by_index(0).expect("a number")
    }

    /// Runs a subject in a database of its own, perhaps with an old snapshot held open.
    pub(crate) async fn run(&self, subject: &Subject, snapshot: bool) -> Result<Measured, String> {
        let program = subject.program.as_ref().ok_or("is not built")?;
        for sql in [
            "DROP DATABASE IF EXISTS outbox_bench WITH (FORCE)",
            "CREATE DATABASE outbox_bench",
            "CHECKPOINT",
        ] {
            self.db.execute_unprepared(sql).await.map_err(|error| error.to_string())?;
        }
        let (start, _) = self.url.rsplit_once('/').ok_or("the URL names no database")?;
        let url = format!("{start}/outbox_bench");
        let mut child = Command::new(program)
            .args(&subject.arguments)
            .env("DATABASE_URL", &url)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| error.to_string())?;
        let mut lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
        let mut line = async || lines.next_line().await.ok().flatten().ok_or("it ended early");
        while line().await? != "ready" {}
        let held = if snapshot {
            Some(Database::connect(&url).await.map_err(|error| error.to_string())?)
        } else {
            None
        };
        let held = match &held {
            Some(db) => {
                let tx = db.begin_with_config(Some(IsolationLevel::RepeatableRead), None).await;
                let tx = tx.map_err(|error| error.to_string())?;
                tx.execute_unprepared("SELECT count(*) FROM pg_class")
                    .await
                    .map_err(|error| error.to_string())?;
                Some(tx)
            }
            None => None,
        };
        let wal = "pg_current_wal_insert_lsn() - '0/0'";
        let transactions = "SELECT sum(xact_commit) FROM pg_stat_database WHERE datname = 'outbox_bench'";
        let before = (self.number(wal).await, self.number(transactions).await);
        child.stdin.take().ok_or("no input")?.write_all(b"go\n").await.map_err(|error| error.to_string())?;
        let answer = loop {
            let line = line().await?;
            if ["rate ", "seconds ", "p50 "].iter().any(|word| line.starts_with(word)) {
                break line;
            }
        };
        let wal = self.number(wal).await - before.0;
        drop(held);
        child.wait().await.map_err(|error| error.to_string())?;
        let transactions = self.number(transactions).await - before.1;
        let events = subject.events as f64;
        let words: Vec<_> = answer.split(' ').collect();
        let value = |n: usize| words.get(n).and_then(|word| word.parse::<f64>().ok()).unwrap_or(f64::NAN);
        let first = if words[0] == "seconds" { events / value(1) } else { value(1) };
        Ok(Measured { first, second: value(3), wal: wal / events, transactions: transactions / events })
    }
}
