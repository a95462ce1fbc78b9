//! The ceiling: the statements that the product sends, driven by the bare driver.

use crate::OrderPlaced;
use outbox_core::{
    Envelope, OutboxStore,
    decide::Transition,
    row::LeaseToken,
    store::{ClaimRequest, Mark, Route},
};
use outbox_seaorm::{Outbox, SeaOrmStore};
use sea_orm::{
    DatabaseConnection, Statement, TransactionTrait, Value,
    sqlx::{self, PgPool, Postgres, Row, postgres::PgArguments, query::Query},
};
use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

type Sql<'q> = Query<'q, Postgres, PgArguments>;

/// The statements of an event's way, as the product sent them.
#[derive(Clone, Debug)]
pub struct Statements {
    claim: Statement,
    mark: Statement,
    insert: Statement,
}

impl Statements {
    /// Lets the product write, claim and mark one row, and listens.
    pub async fn listen(db: &DatabaseConnection, batch: u32) -> Self {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let mut db = db.clone();
        let sink = heard.clone();
        db.set_metric_callback(move |info| sink.lock().expect("no panic").push(info.statement.clone()));
        let take =
            |heard: &Mutex<Vec<Statement>>| heard.lock().expect("no panic").pop().expect("a statement");
        let tx = db.begin().await.expect("a transaction");
        let event = OrderPlaced::numbered(0);
        let envelope = Envelope::new(&event).expect("a small event");
        Outbox::default().append_envelopes(&tx, &[envelope]).await.expect("a row");
        tx.commit().await.expect("a commit");
        let insert = take(&heard);
        let store = SeaOrmStore::new(db);
        store.check().await.expect("tables");
        let claimed = store.claim(&request(batch)).await.expect("a claim").rows;
        let claim = take(&heard);
        let marks: Vec<_> = claimed
            .iter()
            .map(|row| Mark {
                id: row.id,
                token: request(batch).token,
                transition: Transition::Dispatched,
                replay_of: None,
            })
            .collect();
        store.mark(&marks, None).await.expect("marks");
        Self { claim, mark: take(&heard), insert }
    }

    /// The claim with its values in the text.
    pub fn claim_text(&self) -> String {
        self.claim.to_string()
    }

    /// So many clients claim and mark until so many rows are dispatched. Returns rows a second.
    pub async fn drain(&self, pool: &PgPool, clients: usize, rows: usize) -> f64 {
        let started = Instant::now();
        let mut running = Vec::new();
        for _ in 0..clients {
            let (statements, pool) = (self.clone(), pool.clone());
            running.push(tokio::spawn(async move {
                let mut marked = 0;
                while marked < rows.div_ceil(clients) {
                    let claimed = statements.pass(&pool).await;
                    if claimed == 0 {
                        break;
                    }
                    marked += claimed;
                }
                marked
            }));
        }
        let mut marked = 0;
        for client in running {
            marked += client.await.expect("no panic");
        }
        rate(marked, started.elapsed())
    }

    /// Business rows, each with an event, by so many producers. Returns transactions a second.
    pub async fn enqueue(&self, pool: &PgPool, rows: u64, producers: u64) -> f64 {
        let started = Instant::now();
        let mut running = Vec::new();
        for _ in 0..producers {
            let (statements, pool) = (self.clone(), pool.clone());
            running.push(tokio::spawn(async move {
                for _ in 0..rows / producers {
                    let mut tx = pool.begin().await.expect("a transaction");
                    let order =
                        sqlx::query("INSERT INTO bench_orders (cents) VALUES ($1) RETURNING id, cents");
                    order.bind(100_i64).fetch_one(&mut *tx).await.expect("a row");
                    filled(&statements.insert, LeaseToken::new(), None)
                        .execute(&mut *tx)
                        .await
                        .expect("an event");
                    tx.commit().await.expect("a commit");
                }
            }));
        }
        for producer in running {
            producer.await.expect("no panic");
        }
        rate(usize::try_from(rows).unwrap_or(usize::MAX), started.elapsed())
    }

    async fn pass(&self, pool: &PgPool) -> usize {
        let token = LeaseToken::new();
        let claimed = filled(&self.claim, token, None).fetch_all(pool).await.expect("a claim");
        let ids: Vec<_> = claimed.iter().map(|row| row.get::<i64, _>("id").to_string()).collect();
        if !ids.is_empty() {
            filled(&self.mark, token, Some(&ids.join(","))).execute(pool).await.expect("marks");
        }
        ids.len()
    }
}

/// The statement with a token (or message id), and with ids, in the place of those that it was heard with.
fn filled<'q>(statement: &'q Statement, token: LeaseToken, ids: Option<&str>) -> Sql<'q> {
    let mut query = sqlx::query(sqlx::AssertSqlSafe(statement.sql.clone()));
    for value in statement.values.iter().flat_map(|values| &values.0) {
        query = match (value, ids) {
            (Value::Uuid(Some(_)), _) => query.bind(token.0),
            (Value::Uuid(None), _) => query.bind(None::<uuid::Uuid>),
            (Value::String(_), Some(ids)) => query.bind(ids.to_owned()),
            (Value::String(text), None) => query.bind(text.clone()),
            (Value::BigInt(number), _) => query.bind(*number),
            (Value::Int(number), _) => query.bind(*number),
            (Value::SmallInt(number), _) => query.bind(*number),
            (Value::Double(number), _) => query.bind(*number),
            (Value::ChronoDateTimeUtc(time), _) => query.bind(*time),
            (other, _) => panic!("{other:?} is not expected"),
        };
    }
    query
}

/// A claim of so many rows.
pub fn request(limit: u32) -> ClaimRequest<'static> {
    const ROUTES: &[Route] = &[Route { event_type: "bench.order-placed", event_version: 1 }];
    ClaimRequest {
        claimed_by: "raw",
        token: LeaseToken(uuid::Uuid::from_u128(1)),
        lease: Duration::from_secs(30),
        limit,
        routes: ROUTES,
        proceed: &[],
        now: None,
    }
}

/// So many in that time, a second.
pub fn rate(count: usize, time: Duration) -> f64 {
    #[allow(clippy::cast_precision_loss)] // A benchmark's count.
    {
        count as f64 / time.as_secs_f64()
    }
}
