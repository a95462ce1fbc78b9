//! The signal to stop, remembered: a future must not be asked again once it was ready.

use std::{future::Future, pin::Pin, time::Duration};
use tokio::time::{Instant, sleep_until};

/// The user's signal, and until when everything has to end once it came.
pub(crate) struct Shutdown<'a, F> {
    signal: Pin<&'a mut F>,
    patience: Duration,
    deadline: Option<Instant>,
}

impl<'a, F: Future<Output = ()>> Shutdown<'a, F> {
    pub(crate) fn new(signal: Pin<&'a mut F>, patience: Duration) -> Self {
        Self { signal, patience, deadline: None }
    }

    /// Ready when the signal has come, and from then on. Cancel safe.
    pub(crate) async fn signalled(&mut self) -> Instant {
        if let Some(deadline) = self.deadline {
            return deadline;
        }
        self.signal.as_mut().await;
        let now = Instant::now();
        let deadline = now.checked_add(self.patience).unwrap_or(now);
        *self.deadline.insert(deadline)
    }

    /// Ready when the time that everything has to end in is over. Cancel safe.
    pub(crate) async fn overdue(&mut self) {
        let deadline = self.signalled().await;
        sleep_until(deadline).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;

    #[tokio::test(start_paused = true)]
    async fn a_signal_is_remembered_and_its_deadline_stands() {
        let signal = pin!(async {});
        let mut shutdown = Shutdown::new(signal, Duration::from_secs(5));
        let deadline = shutdown.signalled().await;
        tokio::time::advance(Duration::from_secs(3)).await;
        assert_eq!(shutdown.signalled().await, deadline);
        shutdown.overdue().await;
        assert!(Instant::now() >= deadline);
    }
}
