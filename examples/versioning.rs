//! Rows outlive builds. Rows of version 1 are stored; then code of version 3 is deployed, which reads them; and a change
//! that would have made rows unreadable is caught before it is. Run it; it needs nothing but itself:
//!
//! ```text
//! cargo run --example versioning -p outbox-examples
//! ```

#![allow(clippy::print_stdout, reason = "an example tells its story")]

use outbox_core::{
    HandlerError, MessageContext, OutboxEvent, Relay, Router, State, Status,
    catalog::{CatalogError, Check},
    handler,
};
use outbox_seaorm::{Outbox, SeaOrmStore, TableNames, append, migrate};
use schemars::JsonSchema;
use sea_orm::{Database, DatabaseConnection, TransactionTrait};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{error::Error, fs, path::PathBuf, sync::Arc};
use tokio::sync::Mutex;

// ---- the event as it is today. What came before it is read through `upcast_from`, one version after the other

#[derive(Debug, Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "orders.order-placed", version = 3, ordering = none, upcast_from = old::OrderPlacedV2)]
#[outbox(alias = "shop.order-placed")] // what it was called at first
struct OrderPlaced {
    order_id: i32,
    total_cents: i64,
    currency: String,
}

impl From<old::OrderPlacedV2> for OrderPlaced {
    fn from(v2: old::OrderPlacedV2) -> Self {
        Self { order_id: v2.order_id, total_cents: v2.total_cents, currency: "EUR".to_owned() }
    }
}

// ---- the versions before. They are nobody else's business, and stay until no row of theirs is left

mod old {
    use super::{Deserialize, JsonSchema, OutboxEvent, Serialize, Value};

    /// Read by its JSON: nobody wanted to keep the type of version 1.
    #[derive(Debug, Serialize, Deserialize, JsonSchema, OutboxEvent)]
    #[outbox(name = "orders.order-placed", version = 2, ordering = none, upcast_json(1 = total_in_cents))]
    pub(super) struct OrderPlacedV2 {
        pub(super) order_id: i32,
        pub(super) total_cents: i64,
    }

    /// `{"order_id": 7, "total": "12.50"}` → `{"order_id": 7, "total_cents": 1250}`.
    fn total_in_cents(mut payload: Value) -> Result<Value, &'static str> {
        let fields = payload.as_object_mut().ok_or("it is no object")?;
        let total = fields.remove("total").ok_or("there is no total")?;
        let digits = total.as_str().ok_or("the total is no text")?.replace('.', "");
        let cents: i64 = digits.parse().map_err(|_| "the total is no amount")?;
        fields.insert("total_cents".to_owned(), cents.into());
        Ok(payload)
    }
}

// ---- the handler knows the newest version only

#[handler(id = "accounts.book-order")]
async fn book(
    event: OrderPlaced,
    State(books): State<Books>,
    cx: &MessageContext,
) -> Result<(), HandlerError> {
    let OrderPlaced { order_id, total_cents, currency } = event;
    println!(
        "   booked       {total_cents} {currency} for order {order_id}, stored as version {}",
        cx.event_version()
    );
    books.0.lock().await.push(total_cents);
    Ok(())
}

#[derive(Clone, Default)]
struct Books(Arc<Mutex<Vec<i64>>>);

// ---- the story

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    story().await
}

async fn story() -> Result<(), Box<dyn Error>> {
    let db = Database::connect("sqlite::memory:").await?;
    migrate(&db, TableNames::new()).await?;

    println!("1. Builds of the past have stored rows.");
    let tx = db.begin().await?;
    store(&tx, "shop.order-placed", 1, r#"{"order_id":1,"total":"12.50"}"#).await?;
    store(&tx, "orders.order-placed", 1, r#"{"order_id":2,"total":"7.00"}"#).await?;
    store(&tx, "orders.order-placed", 2, r#"{"order_id":3,"total_cents":990}"#).await?;
    store(&tx, "orders.order-placed", 1, r#"{"order_id":4,"total":"a lot"}"#).await?;
    append(&tx, OrderPlaced { order_id: 5, total_cents: 100, currency: "USD".to_owned() }).await?;
    tx.commit().await?;

    println!("2. Today's build reads them all; what cannot be read is kept, with the reason.");
    let books = Books::default();
    let router = Router::builder().state(books.clone()).discover().expect(["accounts.book-order"]).build()?;
    let relay = Relay::new(SeaOrmStore::new(db.clone()), router);
    let pass = relay.pass().await?;
    assert_eq!((pass.dispatched, pass.dead), (4, 1));
    let mut booked = books.0.lock().await.clone();
    booked.sort_unstable();
    assert_eq!(booked, [100, 700, 990, 1250]);
    let (order, reason) = dead_letter(&db).await?;
    println!("   dead letter  {order}: {reason}");
    assert!(reason.ends_with("the total is no amount"), "{reason}");

    println!("3. The lock remembers what was ever written.");
    let lock = LockFile::new();
    let recorded = Check::new(&lock.0).updating(true).run()?.recorded;
    println!("   recorded     {}", recorded.join(", "));
    assert!(Check::new(&lock.0).updating(false).run()?.recorded.is_empty(), "nothing has changed since");

    println!("4. Somebody renames a field, and keeps the version.");
    lock.as_if_the_field_had_been_called("currency", "currency_code")?;
    let errors = Check::new(&lock.0).updating(true).run().err().ok_or("the change was not noticed")?;
    println!("{errors}");
    let rules: Vec<_> =
        errors.errors().iter().flat_map(CatalogError::differences).map(|found| found.rule).collect();
    assert_eq!(rules, ["required-field-added", "field-removed"]);
    println!("Four orders of three versions are in the books, and the rename is not in production.");
    Ok(())
}

/// Writes a row as an older build did.
async fn store(
    tx: &sea_orm::DatabaseTransaction,
    name: &str,
    version: u16,
    payload: &str,
) -> Result<(), Box<dyn Error>> {
    let id = outbox_core::MessageId::new();
    let row = outbox_core::Envelope::stored(id, name.to_owned(), version, payload.to_owned());
    println!("   stored       {}: {payload}", row.logical_name());
    Outbox::default().append_envelopes(tx, &[row]).await?;
    Ok(())
}

/// Name and reason of the only dead letter.
async fn dead_letter(db: &DatabaseConnection) -> Result<(String, String), Box<dyn Error>> {
    use sea_orm::{ConnectionTrait, Statement};
    let sql = "SELECT event_type, status, last_error FROM outbox WHERE status = 'dead'";
    let row = db.query_one_raw(Statement::from_string(db.get_database_backend(), sql)).await?;
    let row = row.ok_or("there is none")?;
    assert_eq!(row.try_get::<String>("", "status")?, Status::Dead.as_str());
    Ok((row.try_get("", "event_type")?, row.try_get("", "last_error")?))
}

/// In a project of yours this is a file beside `Cargo.toml`, and the check is a test of one line:
/// `outbox_core::catalog::check("events.lock.json")`.
struct LockFile(PathBuf);

impl LockFile {
    fn new() -> Self {
        Self(std::env::temp_dir().join(format!("outbox-versioning-{}.lock.json", std::process::id())))
    }

    /// A field cannot be renamed while a program runs, so the past is: the effect is the same.
    fn as_if_the_field_had_been_called(&self, today: &str, before: &str) -> Result<(), Box<dyn Error>> {
        let text = fs::read_to_string(&self.0)?;
        Ok(fs::write(&self.0, text.replace(&format!("\"{today}\""), &format!("\"{before}\"")))?)
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        drop(fs::remove_file(&self.0));
    }
}

#[cfg(test)]
mod tests {
    #[tokio::test]
    async fn the_story_holds() {
        super::story().await.unwrap();
    }
}
