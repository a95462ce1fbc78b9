//! The server on which all of them run, and what a run costs it.

use crate::subject::Subject;
use sea_orm::{
    ConnectOptions, ConnectionTrait, Database, DatabaseConnection, DatabaseTransaction, DbBackend,
    IsolationLevel, Statement, TransactionTrait,
};
use std::{collections::BTreeMap, process::Stdio, time::Duration};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdout, Command},
    time::timeout,
};

/// What came of a run, by name: what the program answered, and what an event cost the database.
pub(crate) type Measured = BTreeMap<String, f64>;

pub(crate) struct Server {
    db: DatabaseConnection,
    url: String,
    counts_statements: bool,
}

/// The fresh database of a run.
pub(crate) struct Fresh<'a> {
    server: &'a Server,
    pub(crate) url: String,
    /// Of this database; a run's own statements are not counted where it can be helped.
    pub(crate) db: DatabaseConnection,
}

/// WAL, transactions and statements until then.
#[derive(Clone, Copy)]
pub(crate) struct Cost([f64; 3]);

/// The longest that a run may take.
const PATIENCE: Duration = Duration::from_mins(10);

const COUNTED: &str = "SELECT coalesce(sum(calls), 0) FROM pg_stat_statements WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())";

impl Server {
    pub(crate) async fn connect(url: &str) -> Self {
        let db = connect(url).await.expect("a PostgreSQL server");
        assert_eq!(db.get_database_backend(), DbBackend::Postgres, "the comparison is made on PostgreSQL");
        let loaded = "(strpos(current_setting('shared_preload_libraries'), 'pg_stat_statements') > 0)::int";
        let counts_statements = number(&db, &format!("SELECT {loaded}")).await > 0.0;
        if !counts_statements {
            println!(
                "Statements are not counted: the server needs shared_preload_libraries = 'pg_stat_statements' in its postgresql.conf, and a restart.\n"
            );
        }
        Self { db, url: url.to_owned(), counts_statements }
    }

    /// An empty database.
    pub(crate) async fn fresh(&self) -> Result<Fresh<'_>, String> {
        for sql in [
            "DROP DATABASE IF EXISTS outbox_bench WITH (FORCE)",
            "CREATE DATABASE outbox_bench",
            "CHECKPOINT",
        ] {
            self.db.execute_unprepared(sql).await.map_err(text)?;
        }
        let (start, _) = self.url.rsplit_once('/').ok_or("the URL names no database")?;
        let url = format!("{start}/outbox_bench");
        let db = connect(&url).await.map_err(text)?;
        if self.counts_statements {
            db.execute_unprepared("CREATE EXTENSION IF NOT EXISTS pg_stat_statements").await.map_err(text)?;
        }
        Ok(Fresh { server: self, url, db })
    }

    /// Runs a subject in a database of its own, perhaps with an old snapshot held open.
    pub(crate) async fn run(&self, subject: &Subject, snapshot: bool) -> Result<Measured, String> {
        let fresh = self.fresh().await?;
        let mut program = Program::start(subject, &subject.arguments, &fresh.url)?;
        program.until_ready().await?;
        let held = if snapshot { Some(fresh.snapshot().await?) } else { None };
        let before = fresh.cost().await;
        program.go().await?;
        let mut measured =
            timeout(PATIENCE, program.answer()).await.map_err(|_| "has not ended after ten minutes")??;
        let wal = fresh.cost().await.0[0];
        drop(held);
        program.child.wait().await.map_err(text)?;
        // A backend tells of its transactions at its end.
        let mut after = fresh.cost().await;
        after.0[0] = wal;
        measured.extend(after.since(before, subject.events));
        Ok(measured)
    }
}

impl Fresh<'_> {
    pub(crate) async fn cost(&self) -> Cost {
        let wal = number(&self.server.db, "SELECT pg_current_wal_insert_lsn() - '0/0'").await;
        let transactions = "SELECT sum(xact_commit) FROM pg_stat_database WHERE datname = 'outbox_bench'";
        let transactions = number(&self.server.db, transactions).await;
        let counts = self.server.counts_statements;
        let statements = if counts { number(&self.db, COUNTED).await } else { f64::NAN };
        Cost([wal, transactions, statements])
    }

    async fn snapshot(&self) -> Result<DatabaseTransaction, String> {
        let db = connect(&self.url).await.map_err(text)?;
        let tx = db.begin_with_config(Some(IsolationLevel::RepeatableRead), None).await.map_err(text)?;
        tx.execute_unprepared("SELECT count(*) FROM pg_class").await.map_err(text)?;
        Ok(tx)
    }
}

impl Cost {
    /// What an event cost.
    #[allow(clippy::cast_precision_loss)] // A benchmark's count.
    pub(crate) fn since(self, before: Self, events: usize) -> impl Iterator<Item = (String, f64)> {
        let names = ["wal", "transactions", "statements"];
        (0..3).map(move |n| (names[n].to_owned(), (self.0[n] - before.0[n]) / events as f64))
    }
}

/// A program that runs.
pub(crate) struct Program {
    pub(crate) child: Child,
    pub(crate) lines: Lines<BufReader<ChildStdout>>,
}

impl Program {
    pub(crate) fn start(subject: &Subject, arguments: &[String], url: &str) -> Result<Self, String> {
        let mut child = Command::new(subject.program.as_ref().ok_or("is not built")?)
            .args(&subject.start)
            .args(arguments)
            .env("DATABASE_URL", url)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(text)?;
        let lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
        Ok(Self { child, lines })
    }

    async fn line(&mut self) -> Result<String, String> {
        let line = self.lines.next_line().await.ok().flatten().ok_or("it ended early")?;
        match line.strip_prefix("cannot ") {
            Some(why) => Err(format!("cannot: {why}")),
            None => Ok(line),
        }
    }

    pub(crate) async fn until_ready(&mut self) -> Result<(), String> {
        while self.line().await? != "ready" {}
        Ok(())
    }

    pub(crate) async fn go(&mut self) -> Result<(), String> {
        let mut input = self.child.stdin.take().ok_or("no input")?;
        input.write_all(b"go\n").await.map_err(text)
    }

    async fn answer(&mut self) -> Result<Measured, String> {
        let line = loop {
            let line = self.line().await?;
            if line.starts_with("answer ") {
                break line;
            }
        };
        let words: Vec<_> = line.split(' ').skip(1).collect();
        let pair = |pair: &[&str]| Some((pair[0].to_owned(), pair.get(1)?.parse().ok()?));
        Ok(words.chunks(2).filter_map(pair).collect())
    }
}

async fn connect(url: &str) -> Result<DatabaseConnection, sea_orm::DbErr> {
    let mut options = ConnectOptions::new(url);
    options.max_connections(2).sqlx_logging(false);
    Database::connect(options).await
}

pub(crate) async fn number(db: &DatabaseConnection, sql: &str) -> f64 {
    let sql = format!("SELECT CAST(({sql}) AS double precision)");
    let row = db.query_one_raw(Statement::from_string(DbBackend::Postgres, sql)).await;
    row.expect("an answer").expect("a row").try_get_by_index(0).expect("a number")
}

#[allow(clippy::needless_pass_by_value)] // It is given to `map_err`.
fn text(error: impl ToString) -> String {
    error.to_string()
}
