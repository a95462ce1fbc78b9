//! The relay's side of the tables. What happens to a row is decided in the core; here it is only written down.

mod blocked;
pub(crate) mod check;
mod claim;
mod control;
mod list;
mod mark;
mod operate;
mod ordered;
mod purge;
mod renew;
pub(crate) mod retry;
pub(crate) mod signals;
mod take_over;

use crate::{
    convert::{outbox_row, store_error},
    dialect::{Dialect, begin_relay},
    sql::{Holes, statement},
    tables::{QuotedNames, TableNames},
};
use chrono::{DateTime, Utc};
use outbox_core::{
    MessageId, OutboxRow, OutboxStore, StoreError,
    store::{
        Announcement, ClaimRequest, Claimed, Control, Mark, MarkReport, OrderedClaim, OrderedRequest, Purge,
        Purged, Renewal, Renewed, Route, TakeOver, TakenOver,
    },
};
use retry::retried;
use sea_orm::{
    ConnectionTrait, DatabaseConnection, DatabaseTransaction, DbBackend, DbErr, QueryResult, Statement,
};
use serde_json::json;
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// The outbox of a SeaORM connection, for a [`Relay`](outbox_core::Relay).
///
/// It works on any of the three databases, told by the connection. Deadlocks, serialisation failures and a busy
/// SQLite are tried again here, a few times. On SQLite run one relay: there is one writer at a time, and more only
/// wait for each other.
#[derive(Clone)]
pub struct SeaOrmStore {
    pub(crate) db: DatabaseConnection,
    pub(crate) dialect: &'static Dialect,
    pub(crate) names: QuotedNames,
    /// Whether a statement outside a transaction is READ COMMITTED anyway. Not known before the tables are checked.
    is_read_committed: Arc<AtomicBool>,
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
            Ok(dialect) => {
                let is_read_committed = Arc::new(AtomicBool::new(backend == DbBackend::Sqlite));
                Self { db, dialect, names: tables.for_backend(backend), is_read_committed }
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// The connection that it works on.
    pub fn connection(&self) -> &DatabaseConnection {
        &self.db
    }

    pub(crate) fn statement(&self, sql: &str, holes: &Holes) -> Statement {
        statement(self.dialect.backend, &self.names, sql, holes)
    }

    async fn execute(&self, db: &impl ConnectionTrait, sql: &str, holes: &Holes) -> Result<u64, DbErr> {
        Ok(db.execute_raw(self.statement(sql, holes)).await?.rows_affected())
    }

    /// A transaction of the relay.
    async fn begin(&self) -> Result<DatabaseTransaction, DbErr> {
        begin_relay(&self.db).await
    }

    /// A transaction of the relay that looks for the first of many rows.
    async fn begin_looking(&self) -> Result<DatabaseTransaction, DbErr> {
        let tx = self.begin().await?;
        if let Some(sql) = self.dialect.plain_plans {
            tx.query_all_raw(self.statement(sql, &Holes::default())).await?;
        }
        Ok(tx)
    }

    /// One statement, READ COMMITTED whatever the session's default is.
    async fn query(&self, sql: &str, holes: &Holes) -> Result<Vec<QueryResult>, DbErr> {
        let statement = self.statement(sql, holes);
        if self.is_read_committed.load(Ordering::Relaxed) {
            return self.db.query_all_raw(statement).await;
        }
        let tx = self.begin().await?;
        let rows = tx.query_all_raw(statement).await?;
        tx.commit().await?;
        Ok(rows)
    }

    /// As [`query`](Self::query), for a statement that returns no rows. Returns how many it changed.
    async fn write(&self, sql: &str, holes: &Holes) -> Result<u64, DbErr> {
        if self.is_read_committed.load(Ordering::Relaxed) {
            return self.execute(&self.db, sql, holes).await;
        }
        let tx = self.begin().await?;
        let changed = self.execute(&tx, sql, holes).await?;
        tx.commit().await?;
        Ok(changed)
    }

    /// What a claimed row is given.
    fn lease_holes(&self, request: &ClaimRequest<'_>) -> Holes {
        self.dialect
            .at(request.now)
            .with("claimed_by", request.claimed_by)
            .with("token", request.token.0)
            .with("lease", self.dialect.span(request.lease))
    }

    /// The same, and which rows are asked for.
    fn claim_holes(&self, request: &ClaimRequest<'_>) -> Holes {
        let route = |(n, route): (usize, &Route)| {
            let Route { event_type, event_version } = route;
            json!({ "n": n, "event_type": event_type, "event_version": event_version })
        };
        let routes: Vec<_> = request.routes.iter().enumerate().map(route).collect();
        self.lease_holes(request)
            .with("limit", i64::from(request.limit))
            .with("routes", serde_json::Value::from(routes).to_string())
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

    /// SQLite has one writer at a time.
    fn claims_at_once(&self) -> bool {
        self.dialect.backend != DbBackend::Sqlite
    }

    async fn claim_ordered(&self, request: &OrderedRequest<'_>) -> Result<OrderedClaim, StoreError> {
        if request.claim.routes.is_empty() || request.claim.limit == 0 {
            return Ok(OrderedClaim::default());
        }
        retried(|| ordered::claim(self, request)).await
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

    async fn renew(&self, renewal: &Renewal<'_>) -> Result<Renewed, StoreError> {
        renew::renew(self, renewal).await
    }

    async fn purge(&self, purge: &Purge) -> Result<Purged, StoreError> {
        retried(|| purge::purge(self, purge)).await
    }

    async fn announce(&self, announcement: &Announcement<'_>) -> Result<(), StoreError> {
        retried(|| control::announce(self, announcement)).await
    }

    async fn withdraw(&self, relay: &str) -> Result<(), StoreError> {
        let holes = Holes::default().with("relay", relay);
        let write = || async {
            let written = self.write(self.dialect.withdraw, &holes).await;
            written.map(drop).map_err(|error| store_error("withdraw the relay", error))
        };
        retried(write).await
    }

    async fn control(&self, now: Option<DateTime<Utc>>) -> Result<Control, StoreError> {
        control::read(self, now).await
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
