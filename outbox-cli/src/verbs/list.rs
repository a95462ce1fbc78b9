//! `outbox list`.

use super::{Call, filter};
use crate::{
    args::List,
    failure::{Exit, Failure},
    json,
    table::cell,
};
use outbox_core::{
    RowId,
    store::{ListRequest, OutboxOperator, Page, Standing},
};

pub(super) async fn run(call: &mut Call<'_>, list: &List) -> Result<Exit, Failure> {
    let mut filter = filter::of(&list.filter)?;
    filter.standing = match list.status {
        Some(status) => Standing::Status(status),
        None if list.live => Standing::Live,
        None if list.unresolved => Standing::Unresolved,
        None if list.replayable => Standing::Replayable,
        None => Standing::Any,
    };
    filter.claimed_by.clone_from(&list.claimed_by);
    let request = ListRequest {
        newest_first: !list.oldest_first,
        after: list.after.map(RowId),
        limit: list.limit,
        contents: list.payload,
        ..ListRequest::of(&filter)
    };
    let page = call.target.store.list(&request).await?;
    call.tell(|| text(&page), || json::page(&page));
    Ok(Exit::Fine)
}

fn text(page: &Page) -> String {
    let table = filter::table(&page.rows);
    let mut lines = vec![if table.is_empty() { "no rows".to_owned() } else { table.text() }];
    for row in &page.rows {
        if let Some(contents) = &row.contents {
            lines.push(format!("payload of {}: {}", row.id, cell(&contents.payload)));
            lines.push(format!("headers of {}: {}", row.id, cell(&contents.headers)));
        }
    }
    lines.extend(page.unreadable.iter().map(|row| cell(&row.error)));
    if let Some(next) = page.next {
        lines.push(format!("There may be more: --after {next}"));
    }
    lines.join("\n")
}
