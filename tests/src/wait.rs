//! Waiting for something to become true, with an end. Never a pause that hopes.

use std::{future::Future, time::Duration};
use tokio::time::{Instant, sleep};

/// How long anything in the tests may take before it counts as hanging.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// Waits until a condition holds.
///
/// # Panics
///
/// When it does not within [`PATIENCE`].
pub async fn until<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    let started = Instant::now();
    while !holds().await {
        assert!(started.elapsed() < PATIENCE, "waited in vain until {what}");
        sleep(Duration::from_millis(10)).await;
    }
}

/// Polls a future at most so often and drops it then: what a caller does that loses its patience.
pub async fn polls<F: Future>(times: usize, future: F) -> Option<F::Output> {
    let mut future = std::pin::pin!(future);
    let mut left = times;
    std::future::poll_fn(|cx| {
        if left == 0 {
            return std::task::Poll::Ready(None);
        }
        left -= 1;
        future.as_mut().poll(cx).map(Some)
    })
    .await
}
