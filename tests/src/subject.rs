//! What the conformance suite needs beside the store itself: committed rows, and a look at them.

use crate::{database::TestDatabase, statements::Statements};
use outbox_core::{
    Envelope, OutboxRow, OutboxStore, RowId,
    decide::FailedAttempt,
    store::OutboxOperator,
    testing::{HistoryEntry, MemoryStore},
};
use outbox_seaorm::{Outbox, SeaOrmStore};
use sea_orm::{ConnectionTrait, DatabaseConnection, Statement, TransactionTrait};

/// A store under test.
#[allow(async_fn_in_trait)]
pub trait Subject {
    /// The store.
    type Store: OutboxOperator + Clone;

    /// The store.
    fn store(&self) -> &Self::Store;

    /// Commits messages, as a save does.
    async fn append(&self, envelopes: &[Envelope]) -> Vec<RowId>;

    /// The history of failed attempts, in the order in which it was written.
    async fn history(&self) -> Vec<HistoryEntry>;

    /// The ids of the rows of an ordering key, in order.
    async fn ids_of_key(&self, key: &str) -> Vec<RowId>;

    /// The row of an envelope.
    async fn row(&self, envelope: &Envelope) -> OutboxRow {
        let found = self.store().find(envelope.message_id).await.unwrap();
        found.unwrap_or_else(|| panic!("no row of {envelope:?}"))
    }
}

/// The model.
#[derive(Debug, Default)]
pub struct Memory(MemoryStore);

impl Subject for Memory {
    type Store = MemoryStore;

    fn store(&self) -> &MemoryStore {
        &self.0
    }

    async fn append(&self, envelopes: &[Envelope]) -> Vec<RowId> {
        self.0.append(envelopes).unwrap()
    }

    async fn history(&self) -> Vec<HistoryEntry> {
        self.0.history()
    }

    async fn ids_of_key(&self, key: &str) -> Vec<RowId> {
        let rows = self.0.rows().into_iter();
        rows.filter(|row| row.envelope.ordering_key.as_deref() == Some(key)).map(|row| row.id).collect()
    }
}

/// A database.
#[derive(Debug)]
pub struct Sql {
    store: SeaOrmStore,
    db: DatabaseConnection,
}

impl Sql {
    /// The store of a test's database.
    pub fn new(database: &TestDatabase) -> Self {
        Self { store: SeaOrmStore::new(database.db.clone()), db: database.db.clone() }
    }

    /// The same, heard by these statements as far as the store sends them.
    pub async fn heard(database: &TestDatabase) -> (Self, Statements) {
        let mut db = database.connect().await;
        let statements = Statements::listen(&mut db);
        (Self { store: SeaOrmStore::new(db), db: database.db.clone() }, statements)
    }

    async fn query(&self, sql: &str) -> Vec<sea_orm::QueryResult> {
        let statement = Statement::from_string(self.db.get_database_backend(), sql);
        self.db.query_all_raw(statement).await.unwrap()
    }
}

impl Subject for Sql {
    type Store = SeaOrmStore;

    fn store(&self) -> &SeaOrmStore {
        &self.store
    }

    async fn append(&self, envelopes: &[Envelope]) -> Vec<RowId> {
        let tx = self.db.begin().await.unwrap();
        Outbox::default().append_envelopes(&tx, envelopes).await.unwrap();
        tx.commit().await.unwrap();
        let mut ids = Vec::new();
        for envelope in envelopes {
            ids.push(self.row(envelope).await.id);
        }
        ids
    }

    async fn ids_of_key(&self, key: &str) -> Vec<RowId> {
        let sql = format!("SELECT id FROM outbox WHERE ordering_key = '{key}' ORDER BY id");
        self.query(&sql).await.iter().map(|row| RowId(row.try_get("", "id").unwrap())).collect()
    }

    async fn history(&self) -> Vec<HistoryEntry> {
        let sql = "SELECT outbox_id, attempt, relay, handler_id, error_class, error FROM outbox_attempts ORDER BY id";
        let entry = |row: &sea_orm::QueryResult| {
            let text = |column: &str| row.try_get::<String>("", column).unwrap();
            let failed = FailedAttempt {
                handler: row.try_get("", "handler_id").unwrap(),
                class: text("error_class").parse().unwrap(),
                error: text("error"),
            };
            let attempt = u32::try_from(row.try_get::<i32>("", "attempt").unwrap()).unwrap();
            HistoryEntry::new(RowId(row.try_get("", "outbox_id").unwrap()), attempt, text("relay"), failed)
        };
        self.query(sql).await.iter().map(entry).collect()
    }
}
