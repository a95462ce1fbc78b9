//! Relays that work beside a test.

use outbox_core::{OutboxStore, Relay, RelayConfig, RelayError};
use std::time::Duration;
use tokio::{sync::oneshot, task::JoinHandle};

/// A relay that looks every ten milliseconds.
pub fn fast() -> RelayConfig {
    let poll = Duration::from_millis(10);
    RelayConfig { poll_min: poll, poll_max: poll, ..RelayConfig::default() }
}

/// A relay that works until it is stopped.
#[derive(Debug)]
pub struct Running {
    stop: oneshot::Sender<()>,
    ended: JoinHandle<Result<(), RelayError>>,
}

impl Running {
    /// Starts it. With `OUTBOX_TEST_LOG` set, what relays log is printed.
    pub fn start<S: OutboxStore>(relay: Relay<S>) -> Self {
        if std::env::var_os("OUTBOX_TEST_LOG").is_some() {
            // The first of several wins.
            let _ = tracing_subscriber::fmt().with_writer(std::io::stderr).try_init();
        }
        let (stop, stopped) = oneshot::channel::<()>();
        let ended = tokio::spawn(async move { relay.run(async { drop(stopped.await) }).await });
        Self { stop, ended }
    }

    /// Stops it and waits for its end.
    ///
    /// # Panics
    ///
    /// When it ended with an error.
    pub async fn stop(self) {
        drop(self.stop);
        self.ended.await.unwrap().unwrap();
    }
}
