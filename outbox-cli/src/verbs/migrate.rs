//! `outbox migrate`.

use super::Call;
use crate::{
    args::Step,
    failure::{Exit, Failure},
    redact::redact,
    table::{Table, maybe},
};
use outbox_seaorm::{MigrationState, migrate, migration_states};
use serde_json::json;

pub(super) async fn run(call: &mut Call<'_>, step: Step) -> Result<Exit, Failure> {
    let failed = |error: sea_orm::DbErr| {
        Failure::database(format!(
            "the tables cannot be migrated: {}; look whether the login may create tables, and whether the schema exists",
            redact(&error.to_string())
        ))
    };
    if matches!(step, Step::Up) {
        migrate(&call.target.db, call.target.tables).await.map_err(failed)?;
    }
    let states = migration_states(&call.target.db, call.target.tables).await.map_err(failed)?;
    let is_done = states.iter().all(|state| state.recorded_in.is_some());
    call.tell(
        || text(&states),
        || {
            let state =
                |state: &MigrationState| json!({ "name": state.name, "recorded_in": state.recorded_in });
            json!({ "migrations": states.iter().map(state).collect::<Vec<_>>() })
        },
    );
    Ok(if is_done { Exit::Fine } else { Exit::Refused })
}

fn text(states: &[MigrationState]) -> String {
    let mut table = Table::of(&["MIGRATION", "RECORDED IN"]);
    for state in states {
        table.add(vec![state.name.clone(), maybe(state.recorded_in.as_deref())]);
    }
    table.text()
}
