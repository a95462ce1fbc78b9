//! `outbox show`.

use super::{Call, filter};
use crate::{
    args::Show,
    failure::{Exit, Failure},
    json,
    table::{Table, cell, maybe, maybe_time, time},
};
use outbox_core::{
    RowId,
    store::{ListFilter, ListRequest, ListedRow, OutboxOperator, Shown},
};
use serde_json::json;

pub(super) async fn run(call: &mut Call<'_>, show: &Show) -> Result<Exit, Failure> {
    let id = match (show.id, show.message) {
        (Some(id), _) => RowId(id),
        (None, message) => find(call, message.unwrap_or_default()).await?,
    };
    let shown = call.target.store.show(id, show.payload).await?;
    call.tell(
        || text(&shown),
        || {
            json!({
                "row": json::row(&shown.row),
                "attempts": shown.attempts.iter().map(json::attempt).collect::<Vec<_>>(),
                "chain": shown.chain.iter().map(ToString::to_string).collect::<Vec<_>>(),
            })
        },
    );
    Ok(Exit::Fine)
}

async fn find(call: &Call<'_>, message: uuid::Uuid) -> Result<RowId, Failure> {
    let mut filter = ListFilter::default();
    filter.message_id = Some(message.into());
    let page = call.target.store.list(&ListRequest::of(&filter)).await?;
    let unreadable = page.unreadable.first().map(|row| row.id);
    page.rows.first().map(|row| row.id).or(unreadable).ok_or_else(|| {
        Failure::refused(format!("there is no outbox row of message {message}; it may have been purged"))
    })
}

fn text(shown: &Shown) -> String {
    let mut lines = vec![row(&shown.row)];
    if shown.chain.len() > 1 {
        let chain: Vec<_> = shown.chain.iter().map(ToString::to_string).collect();
        lines.push(format!("replays      {}", chain.join(" -> ")));
    }
    if !shown.attempts.is_empty() {
        let mut table = Table::of(&["TRY", "FAILED (UTC)", "CLASS", "HANDLER", "RELAY", "ERROR"]);
        for attempt in &shown.attempts {
            table.add(vec![
                attempt.attempt.to_string(),
                time(attempt.failed_at),
                cell(&attempt.class),
                maybe(attempt.handler.as_deref()),
                cell(&attempt.relay),
                cell(&attempt.error),
            ]);
        }
        lines.extend([String::new(), table.text()]);
    }
    lines.join("\n")
}

fn row(row: &ListedRow) -> String {
    let aggregate = row.aggregate_type.as_deref().map(|kind| {
        let version = row.aggregate_version.map(|version| format!(" version {version}")).unwrap_or_default();
        format!("{kind}/{}{version}", row.aggregate_id.as_deref().unwrap_or_default())
    });
    let error = row.error_class.as_deref().map(|class| {
        let text = row.last_error.as_deref().filter(|text| !text.is_empty());
        text.map_or_else(|| class.to_owned(), |text| format!("{class}: {text}"))
    });
    let operated = row.operated_by.as_deref().map(|by| {
        let reason = row.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
        format!("{by}{reason}")
    });
    let lease =
        row.claimed_by.as_deref().map(|relay| format!("{relay} until {}", maybe_time(row.lease_expires_at)));
    let contents = row.contents.as_ref();
    let lines = [
        ("row", Some(row.id.to_string())),
        ("message", Some(row.message_id.to_string())),
        ("event", Some(row.logical_name())),
        ("status", Some(filter::state(row))),
        ("tries", Some(format!("{} (claimed {} times)", row.attempts, row.claims))),
        ("claimed by", lease),
        ("key", row.ordering_key.clone()),
        ("aggregate", aggregate),
        ("correlation", row.correlation_id.clone()),
        ("caused by", row.causation_id.map(|id| id.to_string())),
        ("raised", Some(time(row.occurred_at))),
        ("stored", Some(time(row.created_at))),
        ("due", row.finished_at.is_none().then(|| time(row.available_at))),
        ("finished", row.finished_at.map(time)),
        ("resolved", row.resolved_at.map(time)),
        ("error", error),
        ("handlers", row.completed_handlers.clone()),
        ("operator", operated),
        ("payload", contents.map(|contents| contents.payload.clone())),
        ("headers", contents.map(|contents| contents.headers.clone())),
    ];
    let lines = lines.into_iter().filter_map(|(name, text)| Some(format!("{name:12} {}", cell(&text?))));
    lines.collect::<Vec<_>>().join("\n")
}
