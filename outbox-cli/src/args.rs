//! What can be asked for.

// A flag is a bool.
#![allow(clippy::struct_excessive_bools)]

use chrono::TimeDelta;
use clap::{Args, Parser, Subcommand};
use outbox_core::ErrorClass;
use std::{str::FromStr, time::Duration};
use uuid::Uuid;

/// Look at a transactional outbox, mend it, and ask what is wrong with it.
#[derive(Debug, Parser)]
#[command(name = "outbox", bin_name = "outbox", version, arg_required_else_help = true, max_term_width = 120)]
#[command(after_help = "Exit codes: 0 fine, 1 findings or refused, 2 usage, 3 database, 4 output.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) place: Place,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// Which outbox.
#[derive(Debug, Args)]
pub(crate) struct Place {
    /// postgres://…, mysql://… or sqlite://…; better in the environment, where other users cannot see the password
    #[arg(long, global = true, env = "DATABASE_URL", hide_env_values = true, value_name = "URL")]
    pub(crate) database_url: Option<String>,
    /// The schema of the tables (MySQL: the database)
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) schema: Option<String>,
    /// What stands before the names of the tables
    #[arg(long, global = true, value_name = "TEXT")]
    pub(crate) prefix: Option<String>,
    /// How long to wait for a connection
    #[arg(long, global = true, value_name = "SPAN", default_value = "10s")]
    pub(crate) timeout: Span,
    /// Tell it as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// What is late, and why: rows by event, dead letters, blocked keys, pauses, relays
    Status,
    /// Rows, the newest first
    List(List),
    /// One row with its failed attempts and its replays
    Show(Show),
    /// Try dead letters again, as new messages: one, or all that a filter finds
    Replay(Replay),
    /// Give rows up: their keys go on without them
    Skip(Rows<WhoWhy>),
    /// Make rows in backoff due now
    RetryNow(Rows<Nothing>),
    /// Take rows from a relay that is gone; a live lease is never broken
    Release(Rows<Nothing>),
    /// Delete what has been finished for long
    Purge(Purge),
    /// Let relays leave something alone; producers go on
    Pause(Pause),
    /// End a pause
    Resume(What),
    /// What is wrong, and the command that mends it
    Doctor(Doctor),
    /// The tables
    Migrate(Migrate),
}

/// A verb that takes ids.
#[derive(Debug, Args)]
pub(crate) struct Rows<T: Args> {
    /// The rows
    #[arg(required = true, value_name = "ID")]
    pub(crate) ids: Vec<i64>,
    #[command(flatten)]
    pub(crate) more: T,
    /// Do not ask
    #[arg(long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Nothing {}

#[derive(Debug, Args)]
pub(crate) struct WhoWhy {
    /// Who; your login name unless it is said
    #[arg(long, value_name = "NAME")]
    pub(crate) by: Option<String>,
    /// Why
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
}

/// Which rows.
#[derive(Debug, Default, Args)]
pub(crate) struct Filter {
    /// Name of the event, or name and version: orders.order-placed, orders.order-placed.v2
    #[arg(long, value_name = "NAME")]
    pub(crate) event: Option<String>,
    /// Only those that have failed, and were not dispatched since
    #[arg(long)]
    pub(crate) failed: bool,
    /// Why they failed last: transient, terminal, decode, timeout, …
    #[arg(long, value_name = "CLASS")]
    pub(crate) class: Option<ErrorClass>,
    /// The ordering key, as `show` and `status` tell it
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// The aggregate that raised them: order, or order/7
    #[arg(long, value_name = "TYPE[/ID]")]
    pub(crate) aggregate: Option<String>,
    /// The message
    #[arg(long, value_name = "UUID")]
    pub(crate) message: Option<Uuid>,
    /// The conversation
    #[arg(long, value_name = "ID")]
    pub(crate) correlation: Option<String>,
    /// Stored longer ago: 90s, 15m, 2h, 7d
    #[arg(long, value_name = "SPAN")]
    pub(crate) older_than: Option<Span>,
    /// Stored less long ago
    #[arg(long, value_name = "SPAN")]
    pub(crate) newer_than: Option<Span>,
}

#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    pub(crate) filter: Filter,
    /// pending, claimed, dispatched or dead
    #[arg(long, value_name = "STATUS", group = "standing")]
    pub(crate) status: Option<outbox_core::Status>,
    /// What is not finished
    #[arg(long, group = "standing")]
    pub(crate) live: bool,
    /// Dead, and neither skipped nor resolved by a replay
    #[arg(long, group = "standing")]
    pub(crate) unresolved: bool,
    /// Unresolved, and not replayed yet: what waits for you
    #[arg(long, group = "standing")]
    pub(crate) replayable: bool,
    /// The relay that owns them
    #[arg(long, value_name = "RELAY")]
    pub(crate) claimed_by: Option<String>,
    /// The oldest first
    #[arg(long)]
    pub(crate) oldest_first: bool,
    /// At most so many, up to 1000
    #[arg(long, value_name = "N", default_value = "50", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) limit: u32,
    /// Only rows behind this one: `next` of the page before
    #[arg(long, value_name = "ID")]
    pub(crate) after: Option<i64>,
    /// Also payload and headers
    #[arg(long)]
    pub(crate) payload: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// The row
    #[arg(value_name = "ID", required_unless_present = "message")]
    pub(crate) id: Option<i64>,
    /// Or the message
    #[arg(long, value_name = "UUID", conflicts_with = "id")]
    pub(crate) message: Option<Uuid>,
    /// Also payload and headers
    #[arg(long)]
    pub(crate) payload: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// The dead letters; or say a filter
    #[arg(value_name = "ID")]
    pub(crate) ids: Vec<i64>,
    #[command(flatten)]
    pub(crate) filter: Filter,
    /// All dead letters, without a filter
    #[arg(long)]
    pub(crate) all: bool,
    /// Only list what would be replayed
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// At most so many of what the filter finds, the oldest first
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) limit: u32,
    /// Also the handlers that have succeeded
    #[arg(long)]
    pub(crate) all_handlers: bool,
    #[command(flatten)]
    pub(crate) who: WhoWhy,
    /// Do not ask
    #[arg(long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Purge {
    /// Finished for longer than this: 7d
    #[arg(long, value_name = "SPAN")]
    pub(crate) older_than: Span,
    /// Dead letters that were skipped or resolved, instead of dispatched rows
    #[arg(long, conflicts_with = "history")]
    pub(crate) resolved: bool,
    /// Failed attempts of rows that are finished for good, instead of rows
    #[arg(long)]
    pub(crate) history: bool,
    /// At most so many
    #[arg(long, value_name = "N", default_value = "100000", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: u32,
    /// Only count what would be deleted
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask
    #[arg(long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
#[group(id = "what", required = true, multiple = false)]
pub(crate) struct What {
    /// Everything
    #[arg(long, group = "what")]
    pub(crate) all: bool,
    /// One event, in all its versions
    #[arg(long, value_name = "NAME", group = "what")]
    pub(crate) event: Option<String>,
    /// One handler
    #[arg(long, value_name = "ID", group = "what")]
    pub(crate) handler: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Pause {
    #[command(flatten)]
    pub(crate) what: What,
    #[command(flatten)]
    pub(crate) who: WhoWhy,
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// How long relays keep dispatched rows
    #[arg(long, value_name = "SPAN", default_value = "7d")]
    pub(crate) retention: Span,
    /// How long a transaction may be open
    #[arg(long, value_name = "SPAN", default_value = "5m")]
    pub(crate) long_transaction: Span,
    /// How long a row may be due
    #[arg(long, value_name = "SPAN", default_value = "5m")]
    pub(crate) late: Span,
}

#[derive(Debug, Args)]
pub(crate) struct Migrate {
    #[command(subcommand)]
    pub(crate) step: Step,
}

#[derive(Clone, Copy, Debug, Subcommand)]
pub(crate) enum Step {
    /// Create or update the tables; again does nothing
    Up,
    /// Which migrations were applied
    Status,
}

/// A span of time: a number with s, m, h or d.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span(pub(crate) Duration);

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no span of time; write 90s, 15m, 2h or 7d");
        let unit = text.chars().last().ok_or_else(wrong)?;
        let seconds = match unit {
            's' => 1,
            'm' => 60,
            'h' => 3_600,
            'd' => 86_400,
            _ => return Err(wrong()),
        };
        let number: u64 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
        let span = number.checked_mul(seconds).map(Duration::from_secs).ok_or_else(wrong)?;
        // What no time can be counted back by is a slip of the finger.
        TimeDelta::from_std(span).map_err(|_| wrong())?;
        Ok(Self(span))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_arguments_fit_together() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn a_span_has_a_unit() {
        let span = |text: &str| text.parse::<Span>().map(|span| span.0.as_secs());
        assert_eq!(
            (span("90s"), span("15m"), span("2h"), span("7d")),
            (Ok(90), Ok(900), Ok(7_200), Ok(604_800))
        );
        for text in ["", "7", "d", "-1d", "1.5h", "7 d", "99999999999999999999s", "9999999999999999d", "7é"]
        {
            assert!(span(text).is_err(), "{text:?}");
        }
    }
}
