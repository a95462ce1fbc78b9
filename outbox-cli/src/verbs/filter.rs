//! Filters, and the table of rows that all verbs show.

use crate::{
    args::Filter,
    failure::Failure,
    table::{Table, cell, maybe, short, time},
};
use outbox_core::store::{ListFilter, ListedRow};

/// The filter of the library.
pub(super) fn of(said: &Filter) -> Result<ListFilter, Failure> {
    let mut filter = ListFilter::default();
    if let Some(event) = &said.event {
        let version = event.rsplit_once(".v").and_then(|(name, version)| Some((name, version.parse().ok()?)));
        match version {
            Some((name, version)) => {
                filter.event_type = Some(name.to_owned());
                filter.event_version = Some(version);
            }
            None => filter.event_type = Some(event.clone()),
        }
    }
    if let Some(aggregate) = &said.aggregate {
        let (kind, id) =
            aggregate.split_once('/').map_or((&**aggregate, None), |(kind, id)| (kind, Some(id)));
        if kind.is_empty() || id == Some("") {
            return Err(Failure::usage("--aggregate is written order (all orders) or order/7 (one of them)"));
        }
        filter.aggregate_type = Some(kind.to_owned());
        filter.aggregate_id = id.map(str::to_owned);
    }
    filter.failed = said.failed;
    filter.class = said.class;
    filter.ordering_key.clone_from(&said.key);
    filter.message_id = said.message.map(Into::into);
    filter.correlation_id.clone_from(&said.correlation);
    filter.older_than = said.older_than.map(|span| span.0);
    filter.newer_than = said.newer_than.map(|span| span.0);
    Ok(filter)
}

/// What became of a row, in a word or two.
pub(super) fn state(row: &ListedRow) -> String {
    let more = match (row.resolved_at, row.replayed_as) {
        (Some(_), _) => ", resolved".to_owned(),
        (None, Some(id)) => format!(", replayed as {id}"),
        (None, None) => String::new(),
    };
    cell(&row.status) + &more
}

/// Rows for people.
pub(super) fn table<'a>(rows: impl IntoIterator<Item = &'a ListedRow>) -> Table {
    let mut table = Table::of(&["ID", "EVENT", "STATUS", "TRIES", "STORED (UTC)", "KEY", "ERROR"]);
    for row in rows {
        let error = match (&row.error_class, &row.last_error) {
            (Some(class), Some(text)) => short(&format!("{class}: {text}"), 60),
            (class, _) => maybe(class.as_deref()),
        };
        table.add(vec![
            row.id.to_string(),
            cell(&row.logical_name()),
            state(row),
            row.attempts.to_string(),
            time(row.created_at),
            maybe(row.ordering_key.as_deref()),
            error,
        ]);
    }
    table
}
