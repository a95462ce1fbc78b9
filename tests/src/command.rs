//! The command line, as a process of its own.

use crate::{database::TestDatabase, process::program, wait::PATIENCE};
use std::process::Stdio;
use tokio::process::Command;

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Its exit code.
    pub code: Option<i32>,
    /// What it wrote to standard output.
    pub out: String,
    /// What it wrote to standard error.
    pub err: String,
}

impl Ended {
    /// Its answer as JSON.
    ///
    /// # Panics
    ///
    /// When it is none.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// It did what it was asked for.
    ///
    /// # Panics
    ///
    /// When it did not.
    #[track_caller]
    pub fn fine(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
    }

    /// It ended with this code, and said so with these words.
    ///
    /// # Panics
    ///
    /// When it did not.
    #[track_caller]
    pub fn failed(self, code: i32, words: &str) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert!(self.err.contains(words) || self.out.contains(words), "{words:?} is not in {self:?}");
        self
    }
}

/// A command that is not started yet, without a terminal, and without a `DATABASE_URL` of the tests' own.
///
/// # Panics
///
/// When the program was not built.
pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(program("outbox_command"));
    command.args(arguments).env_remove("DATABASE_URL").stdin(Stdio::null()).kill_on_drop(true);
    command
}

/// Runs a command to its end.
///
/// # Panics
///
/// When it cannot be started or does not end.
pub async fn end(mut command: Command) -> Ended {
    let output = tokio::time::timeout(PATIENCE, command.output()).await.expect("the command ends").unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ended { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// Runs a command on a database, which it knows from the environment.
///
/// # Panics
///
/// As [`end`].
pub async fn outbox(database: &TestDatabase, arguments: &[&str]) -> Ended {
    let mut command = command(arguments);
    command.env("DATABASE_URL", &database.url);
    end(command).await
}
