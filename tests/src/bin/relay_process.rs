//! A process that migrates, or that relays with handlers which do harm on demand.
//!
//! `relay_process migrate URL`, `relay_process pass URL`, `relay_process drain URL`, and
//! `relay_process STEP:N URL`, which drains and kills itself the Nth time that it comes to a step.

use outbox_core::{HandlerError, MessageContext, Relay, RelayConfig, RetryPolicy, Router, State};
use outbox_seaorm::{SeaOrmStore, TableNames, migrate};
use outbox_tests::{
    database::{connect, count},
    events::OrderPlaced,
    interposed::{Asked, Interposed},
};
use sea_orm::{ConnectionTrait, DatabaseConnection};
use std::{
    error::Error,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

/// The short lease of these relays.
const LEASE: Duration = Duration::from_millis(600);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [mode, url] = arguments.as_slice() else { return Err("usage: relay_process MODE URL".into()) };
    // A parent shows what a child said when something goes wrong.
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let db = connect(url, 5).await;
    match mode.as_str() {
        "migrate" => migrate(&db, TableNames::new()).await?,
        "pass" => {
            let report = relay(&db)?.pass().await?;
            #[allow(clippy::print_stdout)] // The parent reads it.
            {
                println!("{report:?}");
            }
        }
        "drain" => relay(&db)?.run(drained(db)).await?,
        step => {
            let (step, nth) = step.split_once(':').ok_or("MODE is migrate, pass, drain or STEP:N")?;
            let (step, nth) = (step.to_owned(), AtomicUsize::new(nth.parse()?));
            let kill = move |asked: Asked<'_>| {
                if asked.name() == step && nth.fetch_sub(1, Ordering::SeqCst) == 1 {
                    std::process::abort();
                }
                None
            };
            let store = Interposed::new(SeaOrmStore::new(db.clone()), kill);
            Relay::new(store, router(&db)?).with_config(config()).run(drained(db)).await?;
        }
    }
    Ok(())
}

fn relay(db: &DatabaseConnection) -> Result<Relay<SeaOrmStore>, Box<dyn Error>> {
    Ok(Relay::new(SeaOrmStore::new(db.clone()), router(db)?).with_config(config()))
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
        -1 => std::process::abort(),
        -2 => {
            while count(&db, "gate").await? == 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            Ok(())
        }
        -3 if attempt == 1 => Err(HandlerError::transient("at the first attempt")),
        _ => Ok(()),
    }
}

async fn drained(db: DatabaseConnection) {
    while count(&db, "outbox WHERE finished_at IS NULL").await.unwrap_or(1) > 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
