//! Rows that are not delivered.

use super::{
    Case, Diagnosis, Finding, Found, NotAsked,
    words::{count, list, shell, time},
};
use crate::{convert::logical_name, dialect::ago, sql::Holes};
use chrono::{DateTime, Utc};
use outbox_core::store::{Cause, EventSignals, OutboxOperator, Pause, Signals};
use sea_orm::{ConnectionTrait, QueryResult};
use std::collections::BTreeMap;

/// Blocked keys that are told one by one.
const KEYS: u32 = 10;
/// Rows that are looked at for expired leases.
const LEASES: i64 = 1_000;
/// Ids that stand in a command.
const IDS: usize = 20;

pub(super) async fn look(case: &Case<'_>, diagnosis: &mut Diagnosis) {
    match case.store.signals(Some(case.at)).await {
        Ok(signals) => {
            diagnosis.add("rows that wait", Ok(waiting(case, &signals)));
            diagnosis.add("events that no relay reads", Ok(unroutable(case, &signals)));
            diagnosis.add("dead letters", Ok(dead_letters(case, &signals)));
        }
        Err(error) => {
            let refused: Found = Err(error.into());
            diagnosis.add("rows that wait and dead letters", refused);
        }
    }
    diagnosis.add("blocked ordering keys", blocked(case).await);
    diagnosis.add("expired leases", leases(case).await);
}

fn waiting(case: &Case<'_>, signals: &Signals) -> Vec<Finding> {
    let waiting = signals.total(|event| event.unfinished() - event.claimed);
    if signals.relays.is_empty() {
        let none = || {
            Finding::error(
                "no-relay",
                format!("{} to be delivered, and no relay lives", wait(waiting)),
                "nothing is delivered until a relay runs",
                "start a relay (`Relay::run`) on these tables, and look into the log of the last one"
                    .to_owned(),
            )
        };
        return (waiting > 0).then(none).into_iter().collect();
    }
    let is_late = |event: &&EventSignals| {
        event.is_read == Some(true) && !is_paused(event, signals) && signals.lag_of(event) > case.options.late
    };
    let late = |event: &EventSignals| {
        Finding::warning(
            "late",
            format!(
                "{} of {} {} due since {}, while {} {}",
                count(event.ready, "row"),
                event.logical_name(),
                if event.ready == 1 { "is" } else { "are" },
                event.ready_since.map(time).unwrap_or_default(),
                count(signals.relays.len() as u64, "relay"),
                if signals.relays.len() == 1 { "lives" } else { "live" },
            ),
            "relays do not keep up, or do not work",
            "look at the relays' health and logs; more relays, or a higher `concurrency`, take more"
                .to_owned(),
        )
    };
    signals.events.iter().filter(is_late).map(late).collect()
}

/// Whether somebody wants its rows to wait: everything is paused, or the event, or all that would handle it.
fn is_paused(event: &EventSignals, signals: &Signals) -> bool {
    let is = |pause: &Pause| signals.pauses.iter().any(|entry| entry.pause == *pause);
    let sets = signals.relays.iter().filter_map(|relay| relay.handlers.get(&event.logical_name()));
    let mut handlers = sets.flatten().peekable();
    let has_some = handlers.peek().is_some();
    is(&Pause::All)
        || is(&Pause::Event(event.event_type.clone()))
        || (has_some && handlers.all(|id| is(&Pause::Handler(id.clone()))))
}

fn wait(n: u64) -> String {
    if n == 1 { "1 row waits".to_owned() } else { format!("{n} rows wait") }
}

fn unroutable(case: &Case<'_>, signals: &Signals) -> Vec<Finding> {
    let of_event = |event: &EventSignals| {
        Finding::error(
            "event-unroutable",
            format!("{} of {}, which no live relay reads", wait(event.unroutable()), event.logical_name()),
            "they stay until a build that reads them is deployed, and hold up their ordering keys",
            format!(
                "deploy a relay that reads {0}, or `.ignore` it; look with `{1}`",
                event.logical_name(),
                case.words.outbox(format!("list --live --event {}", shell(&event.logical_name())))
            ),
        )
    };
    signals.events.iter().filter(|event| event.unroutable() > 0).map(of_event).collect()
}

fn dead_letters(case: &Case<'_>, signals: &Signals) -> Vec<Finding> {
    let of_event = |event: &EventSignals| {
        let name = event.logical_name();
        let since = event.dead_since.map(time).unwrap_or_default();
        let of_class = |(class, n): (&outbox_core::ErrorClass, &u64)| {
            let filter = format!("--event {} --class {class}", shell(&name));
            Finding::warning(
                "dead-letters",
                format!(
                    "{} of {name}, class {class}; the oldest of {name} since {since}",
                    count(*n, "dead letter")
                ),
                "they are not delivered until they are replayed",
                format!(
                    "look with `{}`, mend the cause, then `{}` or `{}`",
                    case.words.outbox(format!("list --replayable {filter}")),
                    case.words.outbox(format!("replay {filter} --reason '…'")),
                    case.words.outbox("skip ID --reason '…'"),
                ),
            )
        };
        event.dead.iter().map(of_class).collect::<Vec<_>>()
    };
    signals.events.iter().flat_map(of_event).collect()
}

async fn blocked(case: &Case<'_>) -> Found {
    let keys = case.store.blocked_keys(KEYS, Some(case.at)).await?;
    let finding = |key: &outbox_core::store::BlockedKey| {
        let (because, mend) = match key.cause {
            Cause::Dead => (
                "is dead",
                format!(
                    "mend the cause, then `{}` or `{}`",
                    case.words.outbox(format!("replay {} --reason '…'", key.head)),
                    case.words.outbox(format!("skip {} --reason '…'", key.head))
                ),
            ),
            Cause::Unroutable => (
                "is read by no live relay",
                format!(
                    "deploy a relay that reads {}, or `{}`",
                    key.logical_name,
                    case.words.outbox(format!("skip {} --reason '…'", key.head))
                ),
            ),
            // A row that is tried again is the ordinary way, and goes by itself.
            _ => return None,
        };
        Some(Finding::error(
            "key-blocked",
            format!(
                "ordering key {:?}: row {} ({}) {because} since {}; {} behind it",
                key.key,
                key.head,
                key.logical_name,
                time(key.since),
                wait(key.followers)
            ),
            "nothing of this key is delivered before that row is dispatched or skipped",
            mend,
        ))
    };
    Ok(keys.iter().filter_map(finding).collect())
}

/// Live rows whose lease has expired for so long that somebody should have taken them over.
async fn leases(case: &Case<'_>) -> Found {
    let sql = "SELECT id, event_type, event_version, claimed_by, lease_expires_at FROM {outbox}
         WHERE finished_at IS NULL AND lease_expires_at <= :before
         LIMIT :limit";
    let before = case.store.dialect.time(ago(case.at, case.options.orphaned));
    let holes = Holes::default().with("before", before).with("limit", LEASES);
    let rows = case.store.db.query_all_raw(case.store.statement(sql, &holes)).await?;
    let mut by_event: BTreeMap<String, Vec<Orphan>> = BTreeMap::new();
    for row in &rows {
        let orphan = Orphan::of(row)?;
        by_event.entry(orphan.event.clone()).or_default().push(orphan);
    }
    Ok(by_event.into_values().map(|orphans| orphaned(case, orphans)).collect())
}

struct Orphan {
    id: i64,
    event: String,
    relay: String,
    expired: DateTime<Utc>,
}

impl Orphan {
    fn of(row: &QueryResult) -> Result<Self, NotAsked> {
        Ok(Self {
            id: row.try_get("", "id")?,
            event: logical_name(row)?,
            relay: row.try_get("", "claimed_by")?,
            expired: row.try_get("", "lease_expires_at")?,
        })
    }
}

fn orphaned(case: &Case<'_>, mut orphans: Vec<Orphan>) -> Finding {
    orphans.sort_by_key(|orphan| (orphan.expired, orphan.id));
    let first = &orphans[0];
    Finding::error(
        "orphan-leases",
        format!(
            "{} of {} with a lease that has expired; the first was left by relay {} at {}",
            count(orphans.len() as u64, "row"),
            first.event,
            first.relay,
            time(first.expired)
        ),
        "the relay that owned them is gone, and no other one takes them over",
        format!(
            "start a relay that reads {}, or `{}`",
            first.event,
            case.words
                .outbox(format!("release {}", list(orphans.iter().take(IDS).map(|orphan| orphan.id), " ")))
        ),
    )
}
