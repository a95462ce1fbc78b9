//! The relay's side of the tables. What happens to a row is decided in the core; here it is only written down.

mod check;
mod claim;
mod mark;
mod retry;
mod take_over;

use crate::{
    convert::{outbox_row, store_error},
    dialect::{Dialect, begin_relay},
    sql::{Hole, Holes, statement},
    tables::{QuotedNames, TableNames},
};
use chrono::{DateTime, Utc};
use outbox_core::{
    MessageId, OutboxRow, OutboxStore, StoreError,
    store::{ClaimRequest, Claimed, Mark, MarkReport, Purge, TakeOver, TakenOver},
};
use retry::retried;
use sea_orm::{ConnectionTrait, DatabaseConnection, DbErr, Statement};
use std::fmt;

/// The outbox of a SeaORM connection, for a [`Relay`](outbox_core::Relay).
///
/// It works on any of the three databases, told by the connection. Deadlocks, serialisation failures and a busy
/// SQLite are tried again here, a few times. On SQLite run one relay: there is one writer at a time, and more only
/// wait for each other.
#[derive(Clone)]
pub struct SeaOrmStore {
    db: DatabaseConnection,
    dialect: &'static Dialect,
    names: QuotedNames,
}

impl SeaOrmStore {
    /// The outbox with the default table names.
    ///
    /// # Panics
    ///
    /// When SeaORM was built with a backend that the outbox has no SQL for; there is none in SeaORM 2.0.
    pub fn new(db: DatabaseConnection) -> Self {
        Self::with_tables(db, TableNames::new())
    }

    /// The outbox with these table names.
    ///
    /// # Panics
    ///
    /// As [`new`](Self::new).
    pub fn with_tables(db: DatabaseConnection, tables: TableNames) -> Self {
        let backend = db.get_database_backend();
        match Dialect::of(backend) {
            Ok(dialect) => Self { db, dialect, names: tables.for_backend(backend) },
            Err(error) => panic!("{error}"),
        }
    }

    /// The connection that it works on.
    pub fn connection(&self) -> &DatabaseConnection {
        &self.db
    }

    fn statement(&self, sql: &str, holes: &Holes) -> Statement {
        statement(self.dialect.backend, &self.names, sql, holes)
    }

    async fn execute(&self, db: &impl ConnectionTrait, sql: &str, holes: &Holes) -> Result<u64, DbErr> {
        Ok(db.execute_raw(self.statement(sql, holes)).await?.rows_affected())
    }

    /// The holes that all statements of a claim share.
    fn claim_holes(&self, request: &ClaimRequest<'_>) -> Holes {
        let route = |route: &outbox_core::store::Route| {
            vec![route.event_type.into(), i32::from(route.event_version).into()]
        };
        self.dialect
            .at(request.now)
            .with("claimed_by", request.claimed_by)
            .with("token", request.token.0)
            .with("lease", self.dialect.span(request.lease))
            .with("limit", i64::from(request.limit))
            .with("routes", Hole::Rows(request.routes.iter().map(route).collect()))
    }
}

impl OutboxStore for SeaOrmStore {
    async fn check(&self) -> Result<(), StoreError> {
        check::check(self).await
    }

    async fn claim(&self, request: &ClaimRequest<'_>) -> Result<Claimed, StoreError> {
        // An empty list of routes is no SQL.
        if request.routes.is_empty() || request.limit == 0 {
            return Ok(Claimed::default());
        }
        retried(|| claim::claim(self, request)).await
    }

    async fn take_over(&self, request: &TakeOver<'_>) -> Result<TakenOver, StoreError> {
        if request.claim.routes.is_empty() {
            return Ok(TakenOver::default());
        }
        retried(|| take_over::take_over(self, request)).await
    }

    async fn has_expired(&self, request: &TakeOver<'_>) -> Result<bool, StoreError> {
        if request.claim.routes.is_empty() {
            return Ok(false);
        }
        retried(|| take_over::has_expired(self, request)).await
    }

    async fn mark(&self, marks: &[Mark], now: Option<DateTime<Utc>>) -> Result<MarkReport, StoreError> {
        mark::mark(self, marks, now).await
    }

    async fn purge(&self, purge: &Purge) -> Result<u64, StoreError> {
        let holes = self
            .dialect
            .at(purge.now)
            .with("older_than", self.dialect.span_ago(purge.older_than))
            .with("limit", i64::from(purge.limit));
        let delete = || async {
            let deleted: Result<u64, DbErr> = async {
                let tx = begin_relay(&self.db, self.dialect.backend).await?;
                let deleted = self.execute(&tx, self.dialect.purge, &holes).await?;
                tx.commit().await?;
                Ok(deleted)
            }
            .await;
            deleted.map_err(|error| store_error("purge finished rows", error))
        };
        retried(delete).await
    }

    async fn find(&self, id: MessageId) -> Result<Option<OutboxRow>, StoreError> {
        let holes = Holes::default().with("message_id", id.as_uuid());
        let found = self.db.query_one_raw(self.statement(self.dialect.find, &holes)).await;
        let found = found.map_err(|error| store_error("find a message", error))?;
        found.as_ref().map(outbox_row).transpose()
    }
}

impl fmt::Debug for SeaOrmStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SeaOrmStore")
            .field("backend", &self.dialect.backend)
            .field("names", &self.names)
            .finish_non_exhaustive()
    }
}
