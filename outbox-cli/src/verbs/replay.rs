//! `outbox replay`: one, or all that a filter finds, which cannot happen by accident.

use super::{
    Call, by, filter,
    rows::{Done, tell},
};
use crate::{
    args::Replay as Said,
    failure::{Exit, Failure},
    json,
    table::count,
};
use outbox_core::{
    RowId,
    store::{OperateError, OutboxOperator, Replay, ReplayPlan},
};
use serde_json::json;

/// Ids or a filter, and never neither.
pub(super) fn check(said: &Said) -> Result<(), Failure> {
    let names_something = filter::of(&said.filter)?.names_something();
    match (said.ids.is_empty(), names_something, said.all) {
        (false, true, _) | (false, _, true) => Err(Failure::usage(
            "ids and a filter do not go together: say the ids of dead letters, or a filter that finds them",
        )),
        (true, true, true) => {
            Err(Failure::usage("--all and a filter do not go together: leave one of them out"))
        }
        (true, false, false) => Err(Failure::usage(
            "say which dead letters: their ids, a filter (--event, --class, --key, …), or --all; with --dry-run nothing is changed",
        )),
        _ => Ok(()),
    }
}

pub(super) async fn run(call: &mut Call<'_>, said: &Said) -> Result<Exit, Failure> {
    let by = by(said.who.by.as_deref())?;
    OperateError::check_texts(&by, said.who.reason.as_deref())?;
    if said.ids.is_empty() {
        return bulk(call, said, &by).await;
    }
    if said.dry_run {
        return Err(Failure::usage("--dry-run is for filters; look at a row with `outbox show ID`"));
    }
    let mut done = Vec::new();
    for id in said.ids.iter().copied().map(RowId) {
        let reason = said.who.reason.as_deref();
        let replay = Replay { id, by: &by, reason, all_handlers: said.all_handlers };
        let replayed = call.target.store.replay(&replay).await;
        done.push(told(id, replayed));
    }
    tell(call, done)
}

fn told(id: RowId, replayed: Result<RowId, OperateError>) -> Done {
    let told = replayed.map(|new| (format!("replayed as {new}"), json!({ "replayed_as": new.to_string() })));
    Done { id, told }
}

async fn bulk(call: &mut Call<'_>, said: &Said, by: &str) -> Result<Exit, Failure> {
    let filter = filter::of(&said.filter)?;
    let plan = ReplayPlan::of(&call.target.store, &filter, said.limit, None).await?;
    let n = plan.rows().len() as u64;
    let more = if plan.is_complete() { "" } else { "; there are more than --limit" };
    if said.dry_run || n == 0 {
        let text = || match n {
            0 => "no dead letter is found that could be replayed".to_owned(),
            _ => format!(
                "{}\n{} would be replayed{more}",
                filter::table(plan.rows()).text(),
                count(n, "dead letter")
            ),
        };
        let json =
            || json!({ "dry_run": true, "rows": json::rows(plan.rows()), "is_complete": plan.is_complete() });
        call.tell(text, json);
        return Ok(Exit::Fine);
    }
    let what = format!(
        "{} of {} will be replayed{more}, as new messages that their handlers get again:\n{}",
        count(n, "dead letter"),
        call.target.place,
        filter::table(plan.rows()).text()
    );
    call.console.confirm(&what, said.yes)?;
    let done = plan.carry_out(&call.target.store, by, said.who.reason.as_deref(), said.all_handlers).await?;
    let done = done.into_iter().map(|done| told(done.dead, done.replayed)).collect();
    tell(call, done)
}
