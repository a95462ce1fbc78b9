use super::{Counter, Fine, Mailer, PingSent, Tenant, Trial, placed};
use chrono::TimeDelta;
use outbox_core::{
    Envelope, ErrorClass, HandlerError, MessageContext, MessageId, RelayConfig, ResultExt, RetryPolicy,
    Router, State, Status,
    row::{HandlerState, Progress},
};
use outbox_tests::{conformance::at, events::OrderPlaced};
use std::{fmt, future, num::ParseIntError, time::Duration};

#[tokio::test]
async fn a_struct_handles_an_event_with_the_parts_that_it_carries() {
    let counter = Counter::default();
    let trial = Trial::new(Router::builder().on_struct("stats.count-orders", counter.clone()), placed());
    assert_eq!(trial.pass(0).await.dispatched, 1);
    assert_eq!((trial.row().status, counter.calls()), (Status::Dispatched, 1));
}

#[tokio::test]
async fn extractors_may_stand_in_any_order() {
    let first =
        |event: OrderPlaced, cx: MessageContext, Tenant(tenant): Tenant, State(mailer): State<Mailer>| {
            let said = format!("{} {} {tenant} {}", event.order_id, cx.attempt(), mailer.0);
            future::ready(Err::<(), _>(HandlerError::terminal(said)))
        };
    let second = |_: OrderPlaced,
                  State(n): State<u8>,
                  State(mailer): State<Mailer>,
                  Tenant(t): Tenant,
                  _: MessageContext| {
        future::ready(Err::<(), _>(HandlerError::terminal(format!("{n} {} {t}", mailer.0))))
    };
    let builder = Router::builder().state(Mailer("smtp")).state(7_u8);
    let builder = builder.on("tests.say-first", first).on("tests.say-second", second);
    let trial = Trial::new(builder, placed().with_header("tenant", "acme"));
    trial.pass(0).await;
    let said: Vec<_> = trial.failures().into_iter().map(|(_, id, _, text)| (id, text)).collect();
    let expected = [("tests.say-first", "42 1 acme smtp"), ("tests.say-second", "7 smtp acme")]
        .map(|(id, text)| (id.to_owned(), text.to_owned()));
    assert_eq!(said, expected);
}

#[tokio::test]
async fn a_handler_function_takes_extractors_by_value_and_by_reference() {
    let envelope = Envelope::new(&PingSent { number: 7 }).unwrap().with_header("tenant", "acme");
    let trial = Trial::new(Router::builder().discover(), envelope);
    trial.pass(0).await;
    assert_eq!(trial.error(), (ErrorClass::Terminal, "number 7, given acme, lent acme!, attempt 1".into()));
    let row = trial.row();
    // Its neighbour succeeded, and that is kept.
    assert_eq!(row.status, Status::Dead);
    assert_eq!(row.progress["router-tests.accept-ping"], HandlerState::Done);
}

#[tokio::test]
async fn an_extractor_that_fails_is_the_failure_of_its_handler() {
    let called = |_: OrderPlaced, _: Tenant| async { Err::<(), _>(HandlerError::transient("was called")) };
    let trial = Trial::new(Router::builder().on("tests.need-tenant", called), placed());
    assert_eq!(trial.pass(0).await.dead, 1);
    assert_eq!(
        trial.failures(),
        [(1, "tests.need-tenant".into(), ErrorClass::Terminal, "the tenant header is missing".into())]
    );
}

#[tokio::test]
async fn the_context_tells_everything_but_the_payload() {
    let cause = MessageId::new();
    let envelope = placed().with_aggregate("order", "42").with_header("tenant", "acme");
    let envelope = envelope.with_correlation_id("conversation").with_causation_id(cause);
    let (id, occurred_at) = (envelope.message_id, envelope.occurred_at);
    let handler = move |_: OrderPlaced, cx: MessageContext| async move {
        assert_eq!((cx.message_id(), cx.causation_id()), (id, Some(cause)));
        assert_eq!((cx.event_type(), cx.event_version()), ("orders.order-placed", 1));
        assert_eq!((cx.aggregate_type(), cx.aggregate_id()), (Some("order"), Some("42")));
        assert_eq!((cx.aggregate_version(), cx.correlation_id()), (None, Some("conversation")));
        assert_eq!((cx.header("tenant"), cx.header("other")), (Some("acme"), None));
        assert_eq!(cx.occurred_at(), occurred_at);
        assert!(!format!("{cx:?}").contains("total_cents"));
        if cx.attempt() < 3 { Err(HandlerError::transient("again")) } else { Ok(()) }
    };
    let trial = Trial::new(Router::builder().on("tests.look-around", handler), envelope);
    for seconds in [0, 100, 200] {
        trial.pass(seconds).await;
    }
    let row = trial.row();
    assert_eq!((row.status, row.attempts, row.claims), (Status::Dispatched, 3, 3), "{:?}", trial.failures());
}

// How a handler fails.

#[tokio::test]
async fn any_error_is_tried_again_after_a_backoff() {
    async fn parse(_: OrderPlaced) -> Result<(), ParseIntError> {
        "x".parse::<u32>()?;
        Ok(())
    }
    let trial = Trial::new(Router::builder().on("tests.parse-number", parse), placed());
    assert_eq!(trial.pass(0).await.retried, 1);
    let row = trial.row();
    assert_eq!((row.status, row.attempts), (Status::Pending, 1));
    assert_eq!(trial.error(), (ErrorClass::Transient, "invalid digit found in string".into()));
    let waits = row.available_at - at(0).unwrap();
    assert!(waits >= TimeDelta::milliseconds(500) && waits <= TimeDelta::seconds(1), "{waits}");
    assert_eq!(trial.pass(0).await.claimed, 0, "not before it is due");
}

#[tokio::test]
async fn a_refused_message_is_a_dead_letter_at_once() {
    let refuse = |_: OrderPlaced| async { Err::<(), _>("no such order").terminal() };
    let trial = Trial::new(Router::builder().on("tests.refuse-order", refuse), placed());
    assert_eq!(trial.pass(0).await.dead, 1);
    let row = trial.row();
    assert_eq!((row.status, row.attempts, row.finished_at), (Status::Dead, 1, at(0)));
    assert_eq!(trial.error(), (ErrorClass::Terminal, "no such order".into()));
    assert_eq!(trial.pass(1_000_000).await.claimed, 0);
}

#[tokio::test]
async fn a_handler_may_name_the_delay_itself() {
    let wait = |_: OrderPlaced| async {
        let answer = Err::<(), _>("429");
        answer.retry_after(Duration::from_secs(90))
    };
    let trial = Trial::new(Router::builder().on("tests.wait-turn", wait), placed());
    assert_eq!(trial.pass(0).await.retried, 1);
    assert_eq!(Some(trial.row().available_at), at(90));
    assert_eq!(trial.error(), (ErrorClass::Transient, "429".into()));
}

#[tokio::test]
async fn an_always_failing_handler_is_called_as_often_as_it_may_and_each_failure_is_kept() {
    let counter = Counter { failures: u32::MAX, ..Counter::default() };
    let retry = RetryPolicy { max_attempts: 3, ..RetryPolicy::default() };
    let trial = Trial::new(Router::builder().on_struct("stats.count-orders", counter.clone()), placed())
        .with_config(RelayConfig { retry, ..RelayConfig::default() });
    for pass in 0..6 {
        trial.pass(pass * 1_000).await;
    }
    assert_eq!((trial.row().status, counter.calls()), (Status::Dead, 3));
    let failure =
        |attempt| (attempt, "stats.count-orders".to_owned(), ErrorClass::Transient, "away".to_owned());
    assert_eq!(trial.failures(), [1, 2, 3].map(failure));
}

#[tokio::test]
async fn an_error_is_stored_with_its_causes_without_nul_and_cut() {
    #[derive(Debug)]
    struct Outer(std::io::Error);
    impl fmt::Display for Outer {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("sending\0 failed")
        }
    }
    impl std::error::Error for Outer {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            Some(&self.0)
        }
    }
    let fail = |_: OrderPlaced| async { Err::<(), _>(Outer(std::io::Error::other("ü".repeat(3_000)))) };
    let trial = Trial::new(Router::builder().on("tests.fail-long", fail), placed());
    trial.pass(0).await;
    let (_, text) = trial.error();
    assert!(text.starts_with("sending failed: üüü"), "{text}");
    assert_eq!(text.chars().count(), 2_000);
}

// Several handlers of one event.

#[tokio::test]
async fn only_the_handlers_that_have_not_completed_run_again() {
    let [first, flaky, last] = [0, 2, 0].map(|failures| Counter { failures, ..Counter::default() });
    let builder = Router::builder()
        .on_struct("tests.run-first", first.clone())
        .on_struct("tests.run-flaky", flaky.clone())
        .on_struct("tests.run-last", last.clone());
    let trial = Trial::new(builder, placed());
    let done = ["tests.run-first", "tests.run-last"].map(|id| (id.to_owned(), HandlerState::Done));
    for seconds in [0, 100] {
        assert_eq!(trial.pass(seconds).await.retried, 1);
        assert_eq!(trial.row().progress, Progress::from(done.clone()));
    }
    assert_eq!(trial.pass(200).await.dispatched, 1);
    assert_eq!([first.calls(), flaky.calls(), last.calls()], [1, 3, 1]);
    let row = trial.row();
    assert_eq!((row.status, row.attempts, row.last_error), (Status::Dispatched, 3, None));
}

#[tokio::test]
async fn a_refusal_by_one_handler_does_not_undo_or_stop_the_others() {
    let refusing = Counter { refuses: true, ..Counter::default() };
    let [done, flaky] = [0, 1].map(|failures| Counter { failures, ..Counter::default() });
    let builder = Router::builder()
        .on_struct("tests.run-refusing", refusing.clone())
        .on_struct("tests.run-flaky", flaky.clone())
        .on_struct("tests.run-done", done.clone());
    let trial = Trial::new(builder, placed());
    let progress = |states: &[(&str, HandlerState)]| -> Progress {
        states.iter().map(|(id, state)| ((*id).to_owned(), *state)).collect()
    };
    let [is_done, refused] = [HandlerState::Done, HandlerState::Refused];
    assert_eq!(trial.pass(0).await.retried, 1);
    let after_one = [("tests.run-done", is_done), ("tests.run-refusing", refused)];
    assert_eq!(trial.row().progress, progress(&after_one));
    assert_eq!(trial.pass(100).await.dead, 1);
    let after_two = [after_one[0], ("tests.run-flaky", is_done), after_one[1]];
    assert_eq!((trial.row().status, trial.row().progress), (Status::Dead, progress(&after_two)));
    assert_eq!([refusing.calls(), flaky.calls(), done.calls()], [1, 2, 1]);
    assert_eq!(trial.error(), (ErrorClass::Terminal, "refused".into()));
}

#[tokio::test]
async fn a_dead_letter_names_the_refusal_that_it_died_of_and_not_a_failure_that_passed() {
    let flaky = Counter { failures: 1, ..Counter::default() };
    let refusing = Counter { refuses: true, ..Counter::default() };
    let builder =
        Router::builder().on_struct("tests.run-flaky", flaky).on_struct("tests.run-refusing", refusing);
    let trial = Trial::new(builder, placed());
    assert_eq!(trial.pass(0).await.retried, 1);
    assert_eq!(trial.pass(100).await.dead, 1);
    assert_eq!(trial.error(), (ErrorClass::Terminal, "refused".into()));
}

#[tokio::test]
async fn a_panic_or_refusal_of_the_first_handler_does_not_keep_the_next_from_running() {
    let counter = Counter::default();
    let builder = Router::builder()
        .on("tests.run-panicking", |_: OrderPlaced| -> future::Ready<Fine> { panic!("first") })
        .on_struct("stats.count-orders", counter.clone());
    let trial = Trial::new(builder, placed());
    assert_eq!((trial.pass(0).await.retried, counter.calls()), (1, 1));
    assert_eq!((trial.pass(100).await.retried, counter.calls()), (1, 1));
}
