//! The command line of an outbox: `outbox VERB …`, on PostgreSQL, MySQL/MariaDB and SQLite. `docs/cli.md` describes it.
//!
//! It is a thin layer over [`OutboxOperator`](outbox_core::store::OutboxOperator) and
//! [`doctor`](outbox_seaorm::doctor): every guard is theirs. A program can have it as a part of its own, for instance to
//! bring its own connection:
//!
//! ```no_run
//! # async fn run() -> outbox_cli::Exit {
//! let mut console = outbox_cli::Console::of_process();
//! outbox_cli::run(std::env::args_os(), &mut console).await
//! # }
//! ```
//!
//! # Layout
//!
//! What was asked for is in `args`, the connection in `connect`, one file a verb in `verbs`, and how it is told in
//! `table`, `json` and `console`.

mod args;
mod connect;
mod console;
mod failure;
mod json;
mod redact;
mod table;
mod verbs;

pub use console::Console;
pub use failure::Exit;

use clap::{Parser, error::ErrorKind};
use std::{ffi::OsString, process::ExitCode};

/// What `main` does: runs the command line of the process.
pub fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let mut console = Console::of_process();
    match runtime {
        Ok(runtime) => runtime.block_on(run(std::env::args_os(), &mut console)).into(),
        Err(error) => {
            console.complain(&format!("error: the runtime cannot start: {error}"));
            Exit::Output.into()
        }
    }
}

/// Runs one command line, its first word being the program's name.
///
/// # Cancel safety
///
/// Dropped, it stops between two rows of a verb, or leaves one row to the database's rollback.
pub async fn run<I>(arguments: I, console: &mut Console) -> Exit
where
    I: IntoIterator<Item: Into<OsString> + Clone>,
{
    let arguments = match args::Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => return usage(&error, console),
    };
    let ended = verbs::run(&arguments, console).await;
    match ended.and_then(|exit| console.finish().map(|()| exit)) {
        Ok(exit) => exit,
        Err(failure) => {
            console.complain(&format!("error: {failure}"));
            failure.exit()
        }
    }
}

/// Help and version are asked for; anything else is a mistake.
fn usage(error: &clap::Error, console: &mut Console) -> Exit {
    let text = error.to_string();
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        console.say(text.trim_end());
        return console.finish().map_or_else(|failure| failure.exit(), |()| Exit::Fine);
    }
    console.complain(text.trim_end());
    Exit::Usage
}
