//! A SeaORM transaction that tells how it ended.

mod health;

use crate::dialect::{begin_relay, begin_with, begin_writer};
use health::Level;
use outbox_core::{
    fate::{Ending, Fate},
    wake,
};
use sea_orm::{
    AccessMode, ConnectionTrait, DatabaseConnection, DatabaseTransaction, DbBackend, DbErr, ExecResult,
    IsolationLevel, QueryResult, Statement, StreamTrait, TransactionError, TransactionOptions,
    TransactionSession, TransactionTrait,
};
use sea_orm_migration::async_trait;
use std::{cell::Cell, fmt, future::Future, pin::Pin};

/// A transaction to save several aggregates in, or an aggregate and whatever else belongs to it.
///
/// It is a SeaORM connection like `DatabaseTransaction`, and knows two things more: its commit wakes the relays of
/// this process, and the aggregates that were saved in it learn how it ended. Saving one of them again after a
/// rollback is then [`SaveError::RolledBack`](crate::SaveError::RolledBack), whether it had raised an event or not; after a
/// commit nothing has to be looked up.
///
/// ```no_run
/// # use outbox_core::OutboxEvent;
/// # use schemars::JsonSchema;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Debug, Serialize, Deserialize, JsonSchema, OutboxEvent)]
/// # #[outbox(name = "stock.level-fell", version = 1, ordering = none)]
/// # struct LevelFell { sku: String }
/// use outbox_seaorm::{OutboxTransaction, SaveError, append};
///
/// # async fn f(db: sea_orm::DatabaseConnection) -> Result<(), SaveError> {
/// OutboxTransaction::run(&db, async |tx| {
///     // … order.save(tx), stock.save(tx), any SeaORM query on tx …
///     append(tx, LevelFell { sku: "A-1".into() }).await
/// })
/// .await?;
/// # Ok(())
/// # }
/// ```
///
/// A save, `begin`, `commit` or `rollback` on it that is dropped half-way (a timeout, a `select!`) damages it, because SeaORM
/// then loses count of its savepoints: every later call is an error, and so is the commit. A plain
/// `DatabaseTransaction` says nothing and may undo more than the dropped save.
///
/// `begin` on it is a savepoint: what was saved within is undone when that rolls back, and belongs to the outer one
/// when it commits. Dropped without a commit, it rolls back. One save at a time: SeaORM's savepoints act on the depth
/// of a transaction, not on a handle. So savepoints end from the inside out; what is out of turn is an error, and undone.
///
/// After an error with which the database has undone the whole transaction (a deadlock on MySQL, a full disk on SQLite),
/// every later call is an error as well. On a plain `DatabaseTransaction` later statements would be stored, one by one.
pub struct OutboxTransaction {
    // Before the level: what the database does at a drop comes first.
    inner: DatabaseTransaction,
    ending: Ending,
    level: Level,
}

impl OutboxTransaction {
    /// Begins a transaction, on SQLite as the writer (`BEGIN IMMEDIATE`).
    ///
    /// # Errors
    ///
    /// The database's error.
    pub async fn begin(db: &DatabaseConnection) -> Result<Self, DbErr> {
        Ok(Self::top(begin_writer(db).await?))
    }

    /// As [`begin`](Self::begin), with an isolation level and the like.
    ///
    /// # Errors
    ///
    /// The database's error.
    pub async fn begin_with(db: &DatabaseConnection, options: TransactionOptions) -> Result<Self, DbErr> {
        Ok(Self::top(begin_with(db, options).await?))
    }

    /// Runs a closure in a transaction, commits when it succeeds and rolls back when it fails.
    ///
    /// # Errors
    ///
    /// What the closure returns, or the database's error.
    ///
    /// # Cancel safety
    ///
    /// Dropped before the commit is sent, everything is rolled back; dropped while it is under way, it is stored or not,
    /// and the aggregates find out at their next save.
    pub async fn run<T, E: From<DbErr>>(
        db: &DatabaseConnection,
        work: impl AsyncFnOnce(&Self) -> Result<T, E>,
    ) -> Result<T, E> {
        let tx = Self::begin(db).await?;
        let done = work(&tx).await;
        match done {
            Ok(value) => tx.commit().await.map(|()| value).map_err(E::from),
            Err(error) => {
                tx.rollback().await?;
                Err(error)
            }
        }
    }

    /// Commits and wakes the relays of this process; a savepoint is released into its transaction.
    ///
    /// # Errors
    ///
    /// The database's error: then it is not known whether it is stored.
    pub async fn commit(self) -> Result<(), DbErr> {
        let Self { inner, ending, level } = self;
        if let Err(damaged) = level.check_end() {
            drop(ending);
            inner.rollback().await?;
            return Err(damaged);
        }
        ending.commit_sent();
        level.guarded(inner.commit()).await?;
        ending.committed();
        if !level.is_savepoint() {
            wake::committed();
        }
        Ok(())
    }

    /// Undoes everything since it began.
    ///
    /// # Errors
    ///
    /// The database's error; it is undone all the same, because nothing was committed.
    pub async fn rollback(self) -> Result<(), DbErr> {
        let Self { inner, ending, level } = self;
        drop(ending);
        // The whole transaction can be undone however damaged it is; a part of it cannot.
        if level.is_savepoint() { level.guarded(inner.rollback()).await } else { inner.rollback().await }
    }

    /// Begins the transaction of a handler, READ COMMITTED whatever the server's default is.
    pub(crate) async fn begin_handler(db: &DatabaseConnection) -> Result<Self, DbErr> {
        Ok(Self::top(begin_relay(db).await?))
    }

    /// Whether it can still be committed.
    ///
    /// # Errors
    ///
    /// Why not.
    pub(crate) fn check_end(&self) -> Result<(), DbErr> {
        self.level.check_end()
    }

    fn top(inner: DatabaseTransaction) -> Self {
        Self { inner, ending: Ending::of(None), level: Level::top() }
    }

    fn savepoint(&self, inner: DatabaseTransaction) -> Self {
        let ending = Ending::of(Some(self.ending.fate()));
        BEGUN.set(Some(ending.fate().clone()));
        Self { inner, ending, level: self.level.savepoint() }
    }
}

thread_local! {
    /// The fate of the savepoint that was begun last on this thread.
    static BEGUN: Cell<Option<Fate>> = const { Cell::new(None) };
}

/// Awaits something that may begin a savepoint of an [`OutboxTransaction`], and brings its fate along.
///
/// A save knows its connection only as `C: TransactionTrait`, which has no place for a fate, and cannot ask what `C` is.
/// So the savepoint leaves it on the thread, and it is taken in the very poll that returned the savepoint: between the
/// two nothing else can run there.
pub(crate) async fn handed_over<T>(begin: impl Future<Output = T>) -> (T, Option<Fate>) {
    let mut begin = std::pin::pin!(begin);
    std::future::poll_fn(|cx| {
        BEGUN.take();
        begin.as_mut().poll(cx).map(|begun| (begun, BEGUN.take()))
    })
    .await
}

impl fmt::Debug for OutboxTransaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutboxTransaction").field("ending", &self.ending).finish_non_exhaustive()
    }
}

#[async_trait::async_trait]
impl ConnectionTrait for OutboxTransaction {
    fn get_database_backend(&self) -> DbBackend {
        ConnectionTrait::get_database_backend(&self.inner)
    }

    async fn execute_raw(&self, statement: Statement) -> Result<ExecResult, DbErr> {
        self.level.check()?;
        self.level.noted(self.inner.execute_raw(statement).await)
    }

    async fn execute_unprepared(&self, sql: &str) -> Result<ExecResult, DbErr> {
        self.level.check()?;
        self.level.noted(self.inner.execute_unprepared(sql).await)
    }

    async fn query_one_raw(&self, statement: Statement) -> Result<Option<QueryResult>, DbErr> {
        self.level.check()?;
        self.level.noted(self.inner.query_one_raw(statement).await)
    }

    async fn query_all_raw(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        self.level.check()?;
        self.level.noted(self.inner.query_all_raw(statement).await)
    }

    fn support_returning(&self) -> bool {
        self.inner.support_returning()
    }

    fn is_mock_connection(&self) -> bool {
        self.inner.is_mock_connection()
    }
}

impl StreamTrait for OutboxTransaction {
    type Stream<'a> = <DatabaseTransaction as StreamTrait>::Stream<'a>;

    fn get_database_backend(&self) -> DbBackend {
        ConnectionTrait::get_database_backend(&self.inner)
    }

    fn stream_raw<'a>(
        &'a self,
        statement: Statement,
    ) -> Pin<Box<dyn Future<Output = Result<Self::Stream<'a>, DbErr>> + 'a + Send>> {
        self.inner.stream_raw(statement)
    }
}

#[async_trait::async_trait]
impl TransactionSession for OutboxTransaction {
    async fn commit(self) -> Result<(), DbErr> {
        Self::commit(self).await
    }

    async fn rollback(self) -> Result<(), DbErr> {
        Self::rollback(self).await
    }
}

#[async_trait::async_trait]
impl TransactionTrait for OutboxTransaction {
    type Transaction = Self;

    async fn begin(&self) -> Result<Self, DbErr> {
        Ok(self.savepoint(self.level.guarded(self.inner.begin()).await?))
    }

    async fn begin_with_config(
        &self,
        isolation: Option<IsolationLevel>,
        access: Option<AccessMode>,
    ) -> Result<Self, DbErr> {
        let begun = self.level.guarded(self.inner.begin_with_config(isolation, access)).await?;
        Ok(self.savepoint(begun))
    }

    async fn begin_with_options(&self, options: TransactionOptions) -> Result<Self, DbErr> {
        Ok(self.savepoint(self.level.guarded(self.inner.begin_with_options(options)).await?))
    }

    async fn transaction<F, T, E>(&self, work: F) -> Result<T, TransactionError<E>>
    where
        F: for<'c> FnOnce(&'c Self) -> Pin<Box<dyn Future<Output = Result<T, E>> + Send + 'c>> + Send,
        T: Send,
        E: fmt::Display + fmt::Debug + Send,
    {
        self.transaction_with_config(work, None, None).await
    }

    async fn transaction_with_config<F, T, E>(
        &self,
        work: F,
        isolation: Option<IsolationLevel>,
        access: Option<AccessMode>,
    ) -> Result<T, TransactionError<E>>
    where
        F: for<'c> FnOnce(&'c Self) -> Pin<Box<dyn Future<Output = Result<T, E>> + Send + 'c>> + Send,
        T: Send,
        E: fmt::Display + fmt::Debug + Send,
    {
        let inner = self.begin_with_config(isolation, access).await.map_err(TransactionError::Connection)?;
        let done = work(&inner).await;
        match done {
            Ok(value) => inner.commit().await.map(|()| value).map_err(TransactionError::Connection),
            Err(error) => {
                inner.rollback().await.map_err(TransactionError::Connection)?;
                Err(TransactionError::Transaction(error))
            }
        }
    }
}
