use outbox_core::{
    Envelope, ErrorClass, HandlerError, OutboxRow, Relay, RelayConfig, RetryPolicy, Router, RouterBuilder,
    handler::Handler, relay::PassReport,
};
use outbox_seaorm::{OutboxTransaction, SeaOrmStore, Transactions, Tx};
use outbox_tests::{
    database::TestDatabase,
    events::{OrderPlaced, placed},
    subject::{Sql, Subject},
};
use sea_orm::{ConnectionTrait, DatabaseConnection, DbErr};
use std::time::Duration;

/// The effect and the progress of a handler are stored together, however its handler is written.
mod once;

/// What is undone, and what a handler must not do to its transaction.
mod undone;

/// Lost answers, cut connections, lost leases, conflicts.
mod faults;

type Fine = Result<(), HandlerError>;

/// What a handler does: a row for each time.
async fn effect(tx: &OutboxTransaction, event: &OrderPlaced, handler: &str) -> Result<(), DbErr> {
    let id = event.order_id;
    let sql = format!("INSERT INTO effects (handler, order_id) VALUES ('{handler}', {id})");
    tx.execute_unprepared(&sql).await.map(drop)
}

/// Has its effect, and nothing else.
async fn count(event: OrderPlaced, tx: Tx) -> Fine {
    Ok(effect(tx.begin().await?, &event, "count").await?)
}

/// A database with effects.
struct Effects<'a> {
    database: &'a TestDatabase,
    subject: Sql,
    /// The pool of the handlers' transactions.
    pool: DatabaseConnection,
}

impl<'a> Effects<'a> {
    async fn new(database: &'a TestDatabase) -> Self {
        let effects = "CREATE TABLE effects (handler VARCHAR(20) NOT NULL, order_id INT NOT NULL)";
        database.db.execute_unprepared(effects).await.unwrap();
        Self { database, subject: Sql::new(database), pool: database.connect().await }
    }

    /// With one order.
    async fn of_one(database: &'a TestDatabase) -> (Self, Envelope) {
        let (effects, order) = (Self::new(database).await, placed(1));
        effects.subject.append(std::slice::from_ref(&order)).await;
        (effects, order)
    }

    fn router(&self) -> RouterBuilder {
        Router::builder().state(Transactions::new(self.pool.clone()))
    }

    fn relay_of(&self, router: RouterBuilder) -> Relay<SeaOrmStore> {
        Relay::new(SeaOrmStore::new(self.database.db.clone()), router.build().unwrap())
            .with_config(impatient())
    }

    fn relay<A, H: Handler<A>>(&self, handler: H) -> Relay<SeaOrmStore> {
        self.relay_of(self.router().on("tests.effect", handler))
    }

    /// One pass of a relay with one handler.
    async fn pass<A, H: Handler<A>>(&self, handler: H) -> PassReport {
        self.relay(handler).pass().await.unwrap()
    }

    async fn count(&self) -> i64 {
        self.database.count("effects").await
    }

    /// The class and the text of a row's last error.
    async fn error(&self, order: &Envelope) -> (ErrorClass, String) {
        self.subject.row(order).await.last_error.unwrap()
    }

    async fn row(&self, order: &Envelope) -> OutboxRow {
        self.subject.row(order).await
    }
}

/// Failed rows are due at once.
fn impatient() -> RelayConfig {
    let retry = RetryPolicy { base: Duration::ZERO, cap: Duration::ZERO, ..RetryPolicy::default() };
    RelayConfig { retry, ..outbox_tests::running::fast() }
}
