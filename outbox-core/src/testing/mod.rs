//! For tests of code that uses the outbox (feature `testing`).
//!
//! * [`MemoryStore`]: a store in memory that behaves as the SQL stores do.
//! * [`Raised`]: what an aggregate has raised.
//! * [`Stored`]: what is in the table, and what became of it.
//! * [`TestRelay`]: runs a relay to the end, with a clock that the test moves, and crashes it where the test wants.
//!
//! What fails says what was there, **payloads included**: that is for tests, and nothing outside of this module does it.
//!
//! ```
//! # use outbox_core::OutboxEvent;
//! # use schemars::JsonSchema;
//! # use serde::{Deserialize, Serialize};
//! # #[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema, OutboxEvent)]
//! # #[outbox(name = "orders.order-placed", version = 1, ordering = none)]
//! # struct OrderPlaced { order_id: i32 }
//! use outbox_core::{Envelope, HandlerError, MessageContext, Router, testing::{MemoryStore, Stored, TestRelay}};
//!
//! async fn fails_twice(_: OrderPlaced, cx: MessageContext) -> Result<(), HandlerError> {
//!     if cx.attempt() < 3 { Err(HandlerError::transient("not yet")) } else { Ok(()) }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store = MemoryStore::default();
//! store.append(&[Envelope::new(&OrderPlaced { order_id: 7 })?])?;
//!
//! let router = Router::builder().on("mail.confirm-order", fails_twice).build()?;
//! let mut relay = TestRelay::new(store, router);
//! relay.drain().await.assert_all_dispatched(); // the backoff passes without waiting
//!
//! let placed = Stored::of(relay.store()).await.one::<OrderPlaced>();
//! assert_eq!((placed.event.order_id, placed.row.attempts), (7, 3));
//! # Ok(())
//! # }
//! ```

mod drained;
mod fault;
mod memory_store;
mod raised;
mod relay;
mod stored;

pub use drained::Drained;
pub use fault::FaultPoint;
pub use memory_store::{HistoryEntry, MemoryStore};
pub use raised::Raised;
pub use relay::{Passed, TestRelay};
pub use stored::{Inspect, Stored, StoredEvent};
