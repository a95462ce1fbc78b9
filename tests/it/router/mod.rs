use outbox_core::{
    Envelope, ErrorClass, EventHandler, FromMessage, HandlerError, MessageContext, MessageId, OutboxEvent,
    OutboxRow, Relay, RelayConfig, ResultExt, RouterBuilder, handler,
    handler::Call,
    relay::PassReport,
    testing::{HistoryEntry, MemoryStore},
};
use outbox_tests::{conformance::at, events::OrderPlaced};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering::Relaxed},
};

/// What is wrong is said when the router is built, all at once and with its place.
mod build;

/// What a handler is given, how it says that it failed, and how several of one event go together.
mod dispatch;

/// What a handler must not be able to do to its relay.
mod faults;

type Fine = Result<(), HandlerError>;

/// The event of this module's `#[handler]`s, which every `discover()` of the binary finds. They take no state, so that
/// no other test has to give one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "router-tests.ping-sent", version = 3, ordering = none)]
struct PingSent {
    number: u32,
}

#[derive(Clone, Debug)]
struct Mailer(&'static str);

/// An extractor of the application's own.
#[derive(Debug)]
struct Tenant(String);

impl FromMessage for Tenant {
    fn from_message(call: &Call) -> Result<Self, HandlerError> {
        let tenant = call.context().header("tenant").ok_or("the tenant header is missing").terminal()?;
        Ok(Self(tenant.to_owned()))
    }
}

/// Says what it was given by failing with it.
#[handler(id = "router-tests.report-ping")]
async fn report_ping(
    PingSent { number }: PingSent,
    Tenant(given): Tenant,
    cx: &MessageContext,
    lent: &mut Tenant,
    owned: MessageContext,
) -> Result<(), HandlerError> {
    tokio::task::yield_now().await;
    lent.0.push('!');
    assert_eq!(cx.message_id(), owned.message_id());
    Err(format!("number {number}, given {given}, lent {}, attempt {}", lent.0, cx.attempt())).terminal()
}

#[handler(id = "router-tests.accept-ping")]
async fn accept_ping(_: PingSent) -> Result<(), HandlerError> {
    Ok(())
}

async fn accept(_: OrderPlaced) -> Result<(), HandlerError> {
    Ok(())
}

/// A relay, its store, and the one message in it.
struct Trial {
    relay: Relay<MemoryStore>,
    message: MessageId,
}

impl Trial {
    fn new(builder: RouterBuilder, envelope: Envelope) -> Self {
        let store = MemoryStore::default();
        let message = envelope.message_id;
        store.append(&[envelope]).unwrap();
        Self { relay: Relay::new(store, builder.build().unwrap()), message }
    }

    fn with_config(self, config: RelayConfig) -> Self {
        Self { relay: self.relay.with_config(config), ..self }
    }

    async fn pass(&self, seconds: i64) -> PassReport {
        self.relay.pass_at(at(seconds)).await.unwrap()
    }

    fn row(&self) -> OutboxRow {
        let rows = self.relay.store().rows();
        rows.into_iter().find(|row| row.envelope.message_id == self.message).unwrap()
    }

    fn history(&self) -> Vec<HistoryEntry> {
        self.relay.store().history()
    }

    /// The class and the text of the last error.
    fn error(&self) -> (ErrorClass, String) {
        self.row().last_error.expect("an error")
    }

    /// What each failed attempt was.
    fn failures(&self) -> Vec<(u32, String, ErrorClass, String)> {
        let failure = |entry: HistoryEntry| {
            let failed = entry.failed;
            (entry.attempt, failed.handler.unwrap_or_default(), failed.class, failed.error)
        };
        self.history().into_iter().map(failure).collect()
    }
}

fn placed() -> Envelope {
    Envelope::new(&OrderPlaced { order_id: 42, total_cents: 100 }).unwrap()
}

/// A handler of placed orders that counts its calls and fails as often as it is told to.
#[derive(Clone, Default)]
struct Counter {
    calls: Arc<AtomicU32>,
    failures: u32,
    refuses: bool,
}

impl Counter {
    fn calls(&self) -> u32 {
        self.calls.load(Relaxed)
    }
}

impl EventHandler<OrderPlaced> for Counter {
    async fn handle(&self, event: OrderPlaced, cx: &MessageContext) -> Result<(), HandlerError> {
        assert_eq!((event.order_id, cx.event_type()), (42, OrderPlaced::EVENT_TYPE));
        if self.calls.fetch_add(1, Relaxed) < self.failures {
            return Err(HandlerError::transient("away"));
        }
        if self.refuses { Err("refused").terminal() } else { Ok(()) }
    }
}
