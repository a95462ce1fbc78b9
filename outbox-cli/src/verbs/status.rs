//! `outbox status`.

use super::Call;
use crate::{
    failure::{Exit, Failure},
    json,
    table::{Table, cell, count, maybe_time, span, time},
};
use outbox_core::store::{BlockedKey, EventSignals, OutboxOperator, Signals};

/// Blocked keys that are listed.
const KEYS: u32 = 20;

pub(super) async fn run(call: &mut Call<'_>) -> Result<Exit, Failure> {
    let signals = call.target.store.signals(None).await?;
    let keys = match signals.blocked.keys() {
        0 => Vec::new(),
        _ => call.target.store.blocked_keys(KEYS, Some(signals.at)).await?,
    };
    let place = call.target.place.clone();
    call.tell(|| text(&place, &signals, &keys), || json::status(&signals, &keys));
    Ok(Exit::Fine)
}

fn text(place: &str, signals: &Signals, keys: &[BlockedKey]) -> String {
    let relays: Vec<_> = signals.relays.iter().map(|relay| cell(&relay.name)).collect();
    let lag = match signals.lag() {
        lag if lag.is_zero() => "none".to_owned(),
        lag => span(lag),
    };
    let mut parts = vec![format!(
        "database  {place}\nat        {} UTC\nrelays    {}\nlag       {lag}",
        time(signals.at),
        if relays.is_empty() { "none".to_owned() } else { relays.join(", ") },
    )];
    let events = events(&signals.events);
    parts.push(if events.is_empty() {
        "nothing waits, and nothing is dead".to_owned()
    } else {
        events.text()
    });
    let mut dead = Table::of(&["DEAD LETTERS OF", "CLASS", "COUNT", "OLDEST OF THE EVENT (UTC)"]);
    for event in &signals.events {
        for (class, n) in &event.dead {
            let cells =
                [cell(&event.logical_name()), class.to_string(), n.to_string(), maybe_time(event.dead_since)];
            dead.add(cells.into());
        }
    }
    parts.extend((!dead.is_empty()).then(|| dead.text()));
    if !keys.is_empty() {
        parts.push(blocked(signals, keys));
    }
    let mut pauses = Table::of(&["PAUSED", "SINCE (UTC)", "BY", "REASON"]);
    for entry in &signals.pauses {
        let reason = entry.reason.as_deref().unwrap_or("-");
        pauses.add(vec![cell(&entry.pause.to_string()), time(entry.since), cell(&entry.by), cell(reason)]);
    }
    parts.extend((!pauses.is_empty()).then(|| pauses.text()));
    parts.join("\n\n")
}

fn events(events: &[EventSignals]) -> Table {
    let mut table = Table::of(&[
        "EVENT",
        "READY",
        "BLOCKED",
        "RETRYING",
        "LATER",
        "CLAIMED",
        "EXPIRED",
        "DEAD",
        "READ",
        "OLDEST UNFINISHED (UTC)",
    ]);
    for event in events {
        let more = if event.is_complete { "" } else { "+" };
        let counts =
            [event.ready, event.blocked, event.retrying, event.scheduled, event.claimed, event.expired];
        let mut cells = vec![cell(&event.logical_name())];
        cells.extend(counts.iter().map(|n| format!("{n}{more}")));
        cells.push(event.dead_letters().to_string());
        cells.push(event.is_read.map_or("?", |is_read| if is_read { "yes" } else { "no" }).to_owned());
        cells.push(maybe_time(event.oldest));
        table.add(cells);
    }
    table
}

fn blocked(signals: &Signals, keys: &[BlockedKey]) -> String {
    let mut table = Table::of(&["BLOCKED KEY", "HEAD", "EVENT", "CAUSE", "SINCE (UTC)", "BEHIND IT"]);
    for key in keys {
        table.add(vec![
            cell(&key.key),
            key.head.to_string(),
            cell(&key.logical_name),
            json::cause(key.cause).to_owned(),
            time(key.since),
            key.followers.to_string(),
        ]);
    }
    let all = signals.blocked.keys();
    let more = if signals.blocked.is_complete { "" } else { "at least " };
    if all > keys.len() as u64 {
        return format!("{}\n{more}{} in all", table.text(), count(all, "blocked key"));
    }
    table.text()
}
