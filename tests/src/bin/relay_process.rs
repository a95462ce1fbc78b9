//! A process that migrates, or that relays with handlers which do harm on demand.
//!
//! `relay_process migrate URL`, `relay_process pass URL`, `relay_process drain URL`, and
//! `relay_process STEP:N URL`, which drains and kills itself the Nth time that it comes to a step. A step is what the store
//! is asked, or `statement`: one that a handler has sent in its transaction. With `count-` before any of them the handlers
//! are two that count in a transaction of theirs; with `patient-` no row dies of the deaths of its relays.

use outbox_core::{HandlerError, MessageContext, Relay, RelayConfig, RetryPolicy, Router, State};
use outbox_seaorm::{SeaOrmStore, TableNames, Transactions, Tx, migrate};
use outbox_tests::{
    database::{connect, count},
    events::OrderPlaced,
    interposed::{Asked, Interposed},
};
use sea_orm::{ConnectionTrait, DatabaseConnection, Statement};
use std::{
    error::Error,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

/// The short lease of these relays.
const LEASE: Duration = Duration::from_millis(600);

/// Where the process kills itself.
struct Death {
    step: String,
    nth: AtomicUsize,
}

impl Death {
    fn at(mode: &str) -> Result<Self, Box<dyn Error>> {
        let (step, nth) = mode.split_once(':').ok_or("MODE is migrate, pass, drain or STEP:N")?;
        Ok(Self { step: step.to_owned(), nth: AtomicUsize::new(nth.parse()?) })
    }

    fn comes_to(&self, step: &str) {
        if self.step == step && self.nth.fetch_sub(1, Ordering::SeqCst) == 1 {
            std::process::abort();
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [mode, url] = arguments.as_slice() else { return Err("usage: relay_process MODE URL".into()) };
    // A parent shows what a child said when something goes wrong.
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let db = connect(url, 5).await;
    let (mode, counts) = mode.strip_prefix("count-").map_or((mode.as_str(), false), |mode| (mode, true));
    let (mode, patient) = mode.strip_prefix("patient-").map_or((mode, false), |mode| (mode, true));
    if mode == "migrate" {
        return Ok(migrate(&db, TableNames::new()).await?);
    }
    let death = if mode.contains(':') { Some(Arc::new(Death::at(mode)?)) } else { None };
    let router = if counts { counting(url, death.clone()).await? } else { router(&db)? };
    let config = if counts || patient { never_dying() } else { config() };
    let judge = move |asked: Asked<'_>| {
        if let Some(death) = &death {
            death.comes_to(asked.name());
        }
        None
    };
    let store = Interposed::new(SeaOrmStore::new(db.clone()), judge);
    let relay = Relay::new(store, router).with_config(config);
    if mode == "pass" {
        let report = relay.pass().await?;
        #[allow(clippy::print_stdout)] // The parent reads it.
        {
            println!("{report:?}");
        }
        return Ok(());
    }
    Ok(relay.run(drained(db)).await?)
}

fn router(db: &DatabaseConnection) -> Result<Router, Box<dyn Error>> {
    Ok(Router::builder().state(db.clone()).on("tests.handle", handle).build()?)
}

fn config() -> RelayConfig {
    RelayConfig {
        lease: LEASE,
        handler_timeout: Duration::from_secs(20),
        poll_min: Duration::from_millis(10),
        poll_max: Duration::from_millis(10),
        retry: RetryPolicy {
            max_attempts: 3,
            base: Duration::from_millis(10),
            cap: Duration::from_millis(10),
        },
        ..RelayConfig::default()
    }
}

/// A row must not die of the many deaths of its relays.
fn never_dying() -> RelayConfig {
    let retry = RetryPolicy { max_attempts: 1_000_000, ..config().retry };
    RelayConfig { retry, ..config() }
}

/// Two handlers that count, each in the transaction that it is lent.
async fn counting(url: &str, death: Option<Arc<Death>>) -> Result<Router, Box<dyn Error>> {
    let mut db = connect(url, 8).await;
    if let Some(death) = death {
        db.set_metric_callback(move |_| death.comes_to("statement"));
    }
    let transactions = Transactions::new(db.clone());
    let first = |event: OrderPlaced, State(db): State<DatabaseConnection>, tx: Tx| async move {
        counted("first", &event, &db, &tx).await
    };
    let second = |event: OrderPlaced, State(db): State<DatabaseConnection>, tx: Tx| async move {
        counted("second", &event, &db, &tx).await
    };
    let router = Router::builder().state(transactions).state(db);
    Ok(router.on("tests.first", first).on("tests.second", second).build()?)
}

/// Counts an order, and then does what `total_cents` says, as [`handle`] does.
async fn counted(
    handler: &str,
    event: &OrderPlaced,
    db: &DatabaseConnection,
    tx: &Tx,
) -> Result<(), HandlerError> {
    let tx = tx.begin().await?;
    let (order, backend) = (event.order_id, tx.get_database_backend());
    for sql in [
        format!("INSERT INTO effects (handler, order_id) VALUES ('{handler}', {order})"),
        "UPDATE counter SET n = n + 1".to_owned(),
    ] {
        tx.execute_raw(Statement::from_string(backend, sql)).await?;
    }
    if event.total_cents == -2 {
        // Outside of the transaction, where the parent sees it.
        db.execute_unprepared(&format!("INSERT INTO waiting (order_id) VALUES ({order})")).await?;
    }
    harm(event.total_cents, db).await
}

async fn harm(order: i64, db: &DatabaseConnection) -> Result<(), HandlerError> {
    match order {
        -1 => std::process::abort(),
        -2 => {
            while count(db, "gate").await? == 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Notes that it runs, and then does what the event says in `total_cents`: -1 kills the process, -2 waits for the
/// table `gate` to be filled, -3 fails at the first attempt, anything else succeeds.
async fn handle(
    event: OrderPlaced,
    State(db): State<DatabaseConnection>,
    cx: MessageContext,
) -> Result<(), HandlerError> {
    let (order, attempt) = (event.order_id, cx.attempt());
    db.execute_unprepared(&format!("INSERT INTO handled (order_id, attempt) VALUES ({order}, {attempt})"))
        .await?;
    match event.total_cents {
        -3 if attempt == 1 => Err(HandlerError::transient("at the first attempt")),
        harmful => harm(harmful, &db).await,
    }
}

async fn drained(db: DatabaseConnection) {
    while count(&db, "outbox WHERE finished_at IS NULL").await.unwrap_or(1) > 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
