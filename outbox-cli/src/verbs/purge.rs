//! `outbox purge`.

use super::Call;
use crate::{
    args::Purge as Said,
    failure::{Exit, Failure},
    table::{count, span},
};
use outbox_core::{
    OutboxStore,
    store::{Finished, Purge},
};
use serde_json::json;

/// Rows that are deleted in one transaction.
const BATCH: u32 = 1_000;

pub(super) async fn run(call: &mut Call<'_>, said: &Said) -> Result<Exit, Failure> {
    let (finished, one) = match (said.resolved, said.history) {
        (true, _) => (Finished::Resolved, "resolved dead letter"),
        (_, true) => (Finished::History, "failed attempt"),
        _ => (Finished::Dispatched, "dispatched row"),
    };
    let mut purge = Purge { finished, older_than: said.older_than.0, limit: said.limit, now: None };
    if !said.yes || said.dry_run {
        let n = call.target.store.purgeable(&purge).await?;
        let more = if n == u64::from(said.limit) { " (--limit; there may be more)" } else { "" };
        let what = format!(
            "{} of {}, finished for more than {}{more}",
            count(n, one),
            call.target.place,
            span(said.older_than.0)
        );
        if said.dry_run || n == 0 {
            call.tell(|| format!("would delete {what}"), || json!({ "dry_run": true, "rows": n }));
            return Ok(Exit::Fine);
        }
        call.console.confirm(&format!("This deletes {what}."), said.yes)?;
    }
    let (mut rows, mut left) = (0, said.limit);
    while left > 0 {
        purge.limit = left.min(BATCH);
        let purged = call.target.store.purge(&purge).await?;
        if purged.busy {
            return Err(Failure::refused(format!(
                "another purge is running; {} deleted before; try again when it is done (`outbox doctor` tells when its lock is missing)",
                count(rows, one)
            )));
        }
        rows += purged.rows;
        left -= purge.limit;
        if purged.rows < u64::from(purge.limit) {
            break;
        }
    }
    call.tell(|| format!("deleted {}", count(rows, one)), || json!({ "dry_run": false, "rows": rows }));
    Ok(Exit::Fine)
}
