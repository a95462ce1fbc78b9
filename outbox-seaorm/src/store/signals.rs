//! One look at the whole outbox.

use super::{SeaOrmStore, blocked};
use crate::{convert::store_error, sql::Hole};
use chrono::{DateTime, Utc};
use outbox_core::{
    ErrorClass, OutboxStore, StoreError,
    store::{BlockedSignals, Control, EventSignals, Signals},
};
use sea_orm::{ConnectionTrait, DbErr, QueryResult};
use serde_json::json;
use std::collections::BTreeMap;

/// Keys that are listed as blocked at most.
const MAX_BLOCKED: usize = 1_000;
/// Events that are looked up, and counted, at once; SQLite joins no more than 500.
const EVENTS: usize = 100;

type ByEvent = BTreeMap<(String, u16), EventSignals>;

pub(super) async fn signals(store: &SeaOrmStore, now: Option<DateTime<Utc>>) -> Result<Signals, StoreError> {
    let failed = |error| store_error("read the signals", error);
    let at = clock(store, now).await.map_err(failed)?;
    let control = store.control(Some(at)).await?;
    let found: Result<_, DbErr> = async {
        let (keys, is_complete) = blocked::scan(store, &control, MAX_BLOCKED, at).await?;
        let mut blocked = BlockedSignals::of(&keys, is_complete);
        let followed: Vec<_> = keys.iter().map(|key| json!({ "k": key.key, "id": key.head.0 })).collect();
        let holes = store.dialect.at(Some(at)).with("keys", json!(followed).to_string());
        let row =
            store.db.query_one_raw(store.statement(store.dialect.operate.all_followers, &holes)).await?;
        blocked.followers = row.as_ref().map_or(Ok(0), |row| count(row, "n"))?;
        let keys = json!(keys.iter().map(|key| &key.key).collect::<Vec<_>>()).to_string();
        let mut events = live_events(store, &control, &keys, at).await?;
        add_dead_letters(store, &control, &mut events).await?;
        Ok((events, blocked))
    }
    .await;
    let (events, blocked) = found.map_err(failed)?;
    Ok(Signals::new(at, events.into_values().collect(), blocked, control))
}

pub(crate) async fn clock(store: &SeaOrmStore, now: Option<DateTime<Utc>>) -> Result<DateTime<Utc>, DbErr> {
    if let Some(now) = now {
        return Ok(now);
    }
    let statement = store.statement("SELECT :now AS at", &store.dialect.at(None));
    let row = store.db.query_one_raw(statement).await?;
    row.ok_or_else(|| DbErr::Custom("the database told no time".to_owned()))?.try_get("", "at")
}

async fn live_events(
    store: &SeaOrmStore,
    control: &Control,
    blocked: &str,
    at: DateTime<Utc>,
) -> Result<ByEvent, DbErr> {
    let mut all = ByEvent::new();
    let mut last = (String::new(), 0_u16);
    loop {
        let holes = store
            .dialect
            .at(Some(at))
            .with("event_type", last.0.as_str())
            .with("event_version", i32::from(last.1))
            .with("limit", i64::try_from(EVENTS).unwrap_or(i64::MAX));
        let rows = store.db.query_all_raw(store.statement(store.dialect.operate.walk_events, &holes)).await?;
        let events = rows.iter().map(event_of).collect::<Result<Vec<_>, _>>()?;
        let Some(next) = events.last() else { return Ok(all) };
        last = next.clone();
        count_events(store, control, (blocked, at), events, &mut all).await?;
    }
}

async fn count_events(
    store: &SeaOrmStore,
    control: &Control,
    (blocked, at): (&str, DateTime<Utc>),
    events: Vec<(String, u16)>,
    all: &mut ByEvent,
) -> Result<(), DbErr> {
    let holes = |(n, (name, version)): (usize, &(String, u16))| {
        let holes = store.dialect.at(Some(at)).with("n", i64::try_from(n).unwrap_or(i64::MAX));
        holes
            .with("event_type", name.as_str())
            .with("event_version", i32::from(*version))
            .with("limit", i64::from(EventSignals::MAX_COUNTED))
    };
    let each = events.iter().enumerate().map(holes).collect();
    let holes = store
        .dialect
        .at(Some(at))
        .with("blocked", blocked)
        .with("events", Hole::Union(store.dialect.operate.event, each));
    for row in store.db.query_all_raw(store.statement(store.dialect.operate.events, &holes)).await? {
        let n = usize::try_from(count(&row, "n")?).unwrap_or(usize::MAX);
        if let Some(event) = events.get(n) {
            let signals = event_signals(&row, control, event, at)?;
            all.insert(event.clone(), signals);
        }
    }
    Ok(())
}

fn event_signals(
    row: &QueryResult,
    control: &Control,
    event: &(String, u16),
    at: DateTime<Utc>,
) -> Result<EventSignals, DbErr> {
    let mut signals = none_of(control, event);
    for (name, counted) in [
        ("ready", &mut signals.ready),
        ("blocked", &mut signals.blocked),
        ("retrying", &mut signals.retrying),
        ("scheduled", &mut signals.scheduled),
        ("claimed", &mut signals.claimed),
        ("expired", &mut signals.expired),
    ] {
        *counted = count(row, name)?;
    }
    signals.oldest = row.try_get("", "oldest")?;
    let first: [Option<DateTime<Utc>>; 2] = [row.try_get("", "unordered")?, row.try_get("", "ordered")?];
    signals.ready_since = first.into_iter().flatten().filter(|due| *due <= at).min();
    signals.is_complete = signals.unfinished() < u64::from(EventSignals::MAX_COUNTED);
    Ok(signals)
}

async fn add_dead_letters(store: &SeaOrmStore, control: &Control, all: &mut ByEvent) -> Result<(), DbErr> {
    let holes = store.dialect.at(None).with("limit", i64::from(EventSignals::MAX_COUNTED));
    for row in store.db.query_all_raw(store.statement(store.dialect.operate.dead_letters, &holes)).await? {
        let event = event_of(&row)?;
        let signals = all.entry(event.clone()).or_insert_with(|| none_of(control, &event));
        let class: String = row.try_get("", "error_class")?;
        // A class of a newer version is counted as what this one cannot read.
        let class = class.parse().unwrap_or(ErrorClass::Unreadable);
        *signals.dead.entry(class).or_default() += count(&row, "n")?;
        let since: Option<DateTime<Utc>> = row.try_get("", "since")?;
        signals.dead_since = signals.dead_since.into_iter().chain(since).min();
    }
    Ok(())
}

fn none_of(control: &Control, (name, version): &(String, u16)) -> EventSignals {
    let is_read = control.is_read(&format!("{name}.v{version}"));
    EventSignals::none(name.clone(), *version, is_read)
}

fn event_of(row: &QueryResult) -> Result<(String, u16), DbErr> {
    let (name, version): (String, i32) = (row.try_get("", "event_type")?, row.try_get("", "event_version")?);
    Ok((name, u16::try_from(version).unwrap_or(u16::MAX)))
}

fn count(row: &QueryResult, column: &str) -> Result<u64, DbErr> {
    Ok(u64::try_from(row.try_get::<i64>("", column)?).unwrap_or(0))
}
