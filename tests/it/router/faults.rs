use super::{Counter, Fine, Trial, accept, placed};
use outbox_core::{
    Envelope, ErrorClass, FromMessage, Handler, HandlerError, MessageId, OutboxEvent, RelayConfig, Router,
    State, Status, handler::Call,
};
use outbox_tests::events::{NoteTaken, OrderPlaced};
use std::{fmt, future, panic::panic_any, time::Duration};

/// Runs a handler that misbehaves beside one of another event that does not, and expects that the attempt is recorded,
/// that the row comes back, and that nothing else is touched. Returns what was recorded.
async fn fails<Args>(misbehaves: impl Handler<Args, Event = OrderPlaced>) -> (ErrorClass, String) {
    let builder = Router::builder()
        .state(Fragile)
        .on("tests.misbehave", misbehaves)
        .on("notes.keep-note", |_: NoteTaken| async { Fine::Ok(()) });
    let trial = Trial::new(builder, placed());
    let note = Envelope::new(&NoteTaken { text: "beside it".into() }).unwrap();
    trial.relay.store().append(&[note]).unwrap();
    let report = trial.pass(0).await;
    assert_eq!((report.claimed, report.dispatched, report.retried), (2, 1, 1), "the relay lives");
    let row = trial.row();
    assert_eq!((row.status, row.attempts), (Status::Pending, 1));
    let (class, text) = trial.error();
    assert_eq!(trial.failures(), [(1, "tests.misbehave".into(), class, text.clone())]);
    assert_eq!(trial.pass(100).await.claimed, 1, "it is tried again");
    (class, text)
}

/// As [`fails`], by a panic. Returns the recorded text.
async fn panics<Args>(misbehaves: impl Handler<Args, Event = OrderPlaced>) -> String {
    let (class, text) = fails(misbehaves).await;
    assert_eq!(class, ErrorClass::Panic, "{text}");
    text
}

/// Panics when it is cloned for a call.
struct Fragile;

impl Clone for Fragile {
    fn clone(&self) -> Self {
        panic!("while a state was cloned")
    }
}

/// Panics when it is dropped.
#[derive(Debug)]
struct PanicsInDrop(&'static str);

impl Drop for PanicsInDrop {
    fn drop(&mut self) {
        // Not while a panic is under way: that would be an abort, which nothing can catch.
        assert!(std::thread::panicking(), "while {} was dropped", self.0);
    }
}

#[tokio::test]
async fn a_panic_before_an_await_is_a_failed_attempt() {
    async fn before(event: OrderPlaced) -> Fine {
        panic!("order {} before an await", event.order_id)
    }
    assert_eq!(panics(before).await, "order 42 before an await");
}

#[tokio::test]
async fn a_panic_after_an_await_is_a_failed_attempt() {
    async fn after(_: OrderPlaced) -> Fine {
        tokio::task::yield_now().await;
        panic!("after an await")
    }
    assert_eq!(panics(after).await, "after an await");
}

#[tokio::test]
async fn a_panic_before_there_is_a_future_is_a_failed_attempt() {
    let sync = |_: OrderPlaced| -> future::Ready<Fine> { panic!("before there is a future") };
    assert_eq!(panics(sync).await, "before there is a future");
}

#[tokio::test]
async fn a_panic_of_an_extractor_is_a_failed_attempt() {
    let takes = |_: OrderPlaced, _: State<Fragile>| async { Fine::Ok(()) };
    assert_eq!(panics(takes).await, "while a state was cloned");
}

#[tokio::test]
async fn a_panic_when_the_future_is_dropped_is_a_failed_attempt() {
    struct Ends(#[expect(dead_code, reason = "it is there to be dropped")] PanicsInDrop);
    impl Future for Ends {
        type Output = Fine;
        fn poll(self: std::pin::Pin<&mut Self>, _: &mut std::task::Context<'_>) -> std::task::Poll<Fine> {
            std::task::Poll::Ready(Ok(()))
        }
    }
    assert_eq!(panics(|_: OrderPlaced| Ends(PanicsInDrop("a future"))).await, "while a future was dropped");
}

#[tokio::test]
async fn a_panic_with_a_value_that_is_no_text_is_a_failed_attempt() {
    let text = panics(|_: OrderPlaced| async { if true { panic_any(42_u8) } else { Fine::Ok(()) } }).await;
    assert_eq!(text, "the handler panicked with a value that is no text");
}

#[tokio::test]
async fn a_panic_with_an_endless_text_is_recorded_cut_and_without_nul() {
    let text = panics(|_: OrderPlaced| async {
        if true { panic_any(format!("\0{}", "ü".repeat(1_000_000))) } else { Fine::Ok(()) }
    });
    assert_eq!(text.await, "ü".repeat(2_000));
}

#[tokio::test]
async fn a_panic_with_a_value_that_panics_in_turn_is_a_failed_attempt() {
    let text = panics(|_: OrderPlaced| async {
        if true { panic_any(PanicsInDrop("a panic's value")) } else { Fine::Ok(()) }
    });
    assert_eq!(text.await, "the handler panicked with a value that is no text");
}

/// An error whose text cannot be had, and one that cannot be dropped.
#[derive(Debug)]
struct Hostile(Option<PanicsInDrop>);

impl fmt::Display for Hostile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_some() { f.write_str("hostile") } else { panic!("while an error was written") }
    }
}

impl std::error::Error for Hostile {}

#[tokio::test]
async fn an_error_that_panics_when_it_is_written_is_a_failed_attempt() {
    let text = panics(|_: OrderPlaced| async { Err::<(), _>(Hostile(None)) }).await;
    assert_eq!(text, "while an error was written");
}

#[tokio::test]
async fn an_error_that_panics_when_it_is_dropped_is_a_failed_attempt() {
    let (class, text) =
        fails(|_: OrderPlaced| async { Err::<(), _>(Hostile(Some(PanicsInDrop("an error")))) }).await;
    // Either is true; what matters is that it failed.
    let recorded = [(ErrorClass::Transient, "hostile"), (ErrorClass::Panic, "while an error was dropped")];
    assert!(recorded.contains(&(class, &text)), "{class}: {text}");
}

#[tokio::test]
async fn the_error_of_an_extractor_that_panics_when_it_is_written_is_a_failed_attempt() {
    struct Takes;
    impl FromMessage for Takes {
        fn from_message(_: &Call) -> Result<Self, HandlerError> {
            Err(Hostile(None).into())
        }
    }
    let text = panics(|_: OrderPlaced, _: Takes| async { Fine::Ok(()) }).await;
    assert_eq!(text, "while an error was written");
}

#[tokio::test]
async fn a_handler_that_takes_too_long_is_cut_off_and_tried_again() {
    let counter = Counter::default();
    let builder = Router::builder()
        .on("tests.never-end", |_: OrderPlaced| future::pending::<Fine>())
        .on_struct("stats.count-orders", counter.clone());
    let config = RelayConfig { handler_timeout: Duration::from_millis(1), ..RelayConfig::default() };
    let trial = Trial::new(builder, placed()).with_config(config);
    assert_eq!(trial.pass(0).await.retried, 1);
    let text = "the handler did not end in time and was cut off; raise handler_timeout or make it faster";
    assert_eq!(trial.failures(), [(1, "tests.never-end".into(), ErrorClass::Timeout, text.into())]);
    assert_eq!((trial.row().status, counter.calls()), (Status::Pending, 1));
    assert_eq!((trial.pass(100).await.retried, counter.calls()), (1, 1), "the other one is done");
}

#[tokio::test]
async fn a_handler_that_panics_when_it_is_cut_off_is_recorded_as_too_slow() {
    let endless = |_: OrderPlaced| async {
        let _guard = PanicsInDrop("a handler");
        future::pending::<Fine>().await
    };
    let config = RelayConfig { handler_timeout: Duration::from_millis(1), ..RelayConfig::default() };
    let trial = Trial::new(Router::builder().on("tests.never-end", endless), placed()).with_config(config);
    assert_eq!((trial.pass(0).await.retried, trial.error().0), (1, ErrorClass::Timeout));
}

#[tokio::test]
async fn a_payload_that_cannot_be_read_is_a_dead_letter_that_does_not_quote_it() {
    let payloads = [
        r#"{"order_id":"alice@example.com","total_cents":1}"#,
        r#"{"order_id":1,"total_cents":1,"order_id":"alice@example.com"}"#,
        r#"{"order_id":1,"total_cents":"alice@example.com"#,
        "alice@example.com",
        "",
    ];
    for payload in payloads {
        let id = MessageId::new();
        let envelope = Envelope::stored(id, OrderPlaced::EVENT_TYPE.into(), 1, payload.into());
        let trial = Trial::new(Router::builder().on("mail.confirm-order", accept), envelope);
        assert_eq!(trial.pass(0).await.dead, 1);
        let row = trial.row();
        assert_eq!((row.status, row.attempts), (Status::Dead, 1));
        let (class, text) = trial.error();
        assert_eq!(trial.failures(), [(1, "mail.confirm-order".into(), ErrorClass::Decode, text.clone())]);
        assert_eq!(class, ErrorClass::Decode);
        assert!(!text.contains("alice") && text.contains("(line "), "{text}");
    }
}
