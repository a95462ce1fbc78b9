//! Pauses and live relays.

use super::SeaOrmStore;
use crate::convert::store_error;
use outbox_core::{
    StoreError,
    store::{Announcement, Control, HandlerSets, LiveRelay, Pause, PauseEntry},
};
use sea_orm::{ConnectionTrait, DbErr, QueryResult};
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeSet;

/// What a relay has said.
#[derive(Deserialize)]
struct Announced {
    handlers: HandlerSets,
    #[serde(default)]
    proceed: BTreeSet<String>,
}

/// What stands before the kind of a pause.
const PAUSE: &str = "pause-";

pub(super) fn kind_of(pause: &Pause) -> String {
    format!("{PAUSE}{}", pause.kind())
}

pub(super) async fn announce(store: &SeaOrmStore, announcement: &Announcement<'_>) -> Result<(), StoreError> {
    let holes = store
        .dialect
        .at(announcement.now)
        .with("relay", announcement.relay)
        .with(
            "value",
            json!({ "handlers": announcement.handlers, "proceed": announcement.proceed }).to_string(),
        )
        .with("lasts", store.dialect.span(announcement.lasts));
    for sql in [store.dialect.forget, store.dialect.announce] {
        store.write(sql, &holes).await.map_err(|error| store_error("announce the relay", error))?;
    }
    Ok(())
}

pub(super) async fn read(
    store: &SeaOrmStore,
    now: Option<chrono::DateTime<chrono::Utc>>,
) -> Result<Control, StoreError> {
    let failed = |error| store_error("read what is paused", error);
    let rows = store.db.query_all_raw(store.statement(store.dialect.control, &store.dialect.at(now))).await;
    let mut control = Control::default();
    for row in &rows.map_err(failed)? {
        add(&mut control, row).map_err(failed)?;
    }
    Ok(control)
}

fn add(control: &mut Control, row: &QueryResult) -> Result<(), DbErr> {
    let (kind, name): (String, String) = (row.try_get("", "kind")?, row.try_get("", "name")?);
    let Some(pause) = kind.strip_prefix(PAUSE) else {
        let value: Option<String> = row.try_get("", "value")?;
        // A newer version may write more than this one understands.
        if let Some(Announced { handlers, proceed }) = value.and_then(|text| serde_json::from_str(&text).ok())
        {
            control.relays.push(LiveRelay { name, handlers, proceed });
        }
        return Ok(());
    };
    if let Some(pause) = Pause::from_parts(pause, &name) {
        let by = row.try_get::<Option<String>>("", "set_by")?.unwrap_or_default();
        let (reason, since) = (row.try_get("", "reason")?, row.try_get("", "updated_at")?);
        control.pauses.push(PauseEntry { pause, by, reason, since });
    }
    Ok(())
}
