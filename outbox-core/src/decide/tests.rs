use super::*;
use crate::{
    envelope::{Envelope, MessageId},
    row::RowId,
};

fn row(attempts: u32, progress: &[(&str, HandlerState)]) -> ClaimedRow {
    let envelope = Envelope::stored(MessageId::new(), "orders.order-placed".into(), 1, "{}".into());
    let progress = progress.iter().map(|(id, state)| ((*id).to_owned(), *state)).collect();
    ClaimedRow { id: RowId(1), envelope, attempts, claims: 1, progress, replay_of: None }
}

fn ok(handler: &str) -> HandlerReport {
    HandlerReport { handler: Some(handler.into()), result: Ok(()) }
}

fn failed(handler: &str, class: ErrorClass) -> HandlerReport {
    HandlerReport { handler: Some(handler.into()), result: Err(Failure::new(class, "no")) }
}

fn verdict(row: &ClaimedRow, reports: &[HandlerReport]) -> Transition {
    decide(row, reports, &RetryPolicy { max_attempts: 3, ..RetryPolicy::default() }, 1.0)
}

#[test]
fn dispatches_when_every_handler_succeeded_now_or_before() {
    assert_eq!(verdict(&row(1, &[]), &[ok("a"), ok("b")]), Transition::Dispatched);
    assert_eq!(verdict(&row(2, &[("a", HandlerState::Done)]), &[ok("b")]), Transition::Dispatched);
}

#[test]
fn retries_only_what_may_pass_and_remembers_the_rest() {
    let reports = [ok("a"), failed("b", ErrorClass::Transient), failed("c", ErrorClass::Terminal)];
    let Transition::Retry { delay, outcome } = verdict(&row(1, &[]), &reports) else { panic!() };
    assert_eq!(delay, Duration::from_secs(1));
    let progress = [("a".to_owned(), HandlerState::Done), ("c".to_owned(), HandlerState::Refused)];
    assert_eq!((outcome.progress, outcome.failed.len()), (progress.into(), 2));
    assert_eq!(outcome.last_error, Some((ErrorClass::Terminal, "no".to_owned())));
}

#[test]
fn a_refusal_is_not_forgotten_when_the_others_succeed_later() {
    let row = row(2, &[("c", HandlerState::Refused)]);
    // Nothing failed now, so the row keeps the error that it has: the refusal.
    assert!(matches!(verdict(&row, &[ok("b")]), Transition::Dead(outcome) if outcome.last_error.is_none()));
    let again = verdict(&row, &[failed("b", ErrorClass::Transient)]);
    assert!(matches!(again, Transition::Retry { outcome, .. } if outcome.last_error.is_none()));
}

#[test]
fn a_row_of_which_nobody_reported_anything_is_not_dispatched() {
    assert!(matches!(verdict(&row(1, &[]), &[]), Transition::Retry { .. }));
    assert!(matches!(verdict(&row(3, &[]), &[]), Transition::Dead(outcome) if outcome.last_error.is_some()));
    assert_eq!(verdict(&row(1, &[("a", HandlerState::Done)]), &[]), Transition::Dispatched);
}

#[test]
fn dies_at_the_cap_and_at_once_when_refused() {
    for class in [ErrorClass::Transient, ErrorClass::Panic, ErrorClass::Timeout] {
        assert!(matches!(verdict(&row(2, &[]), &[failed("a", class)]), Transition::Retry { .. }));
        assert!(matches!(verdict(&row(3, &[]), &[failed("a", class)]), Transition::Dead { .. }));
    }
    for class in [ErrorClass::Terminal, ErrorClass::Decode, ErrorClass::Uncertain] {
        assert!(matches!(verdict(&row(1, &[]), &[failed("a", class)]), Transition::Dead { .. }));
    }
}

#[test]
fn what_is_down_or_paused_uses_no_attempt_and_is_no_part_of_the_history() {
    for class in [ErrorClass::Unavailable, ErrorClass::Paused] {
        let Transition::Wait { outcome, .. } = verdict(&row(3, &[]), &[ok("a"), failed("b", class)]) else {
            panic!()
        };
        assert_eq!(outcome.progress, [("a".to_owned(), HandlerState::Done)].into());
        assert_eq!((outcome.failed, outcome.last_error.unwrap().0), (vec![], class));
    }
}

#[test]
fn a_failure_beside_what_is_down_is_an_attempt() {
    let reports = [failed("a", ErrorClass::Unavailable), failed("b", ErrorClass::Transient)];
    let Transition::Retry { outcome, .. } = verdict(&row(1, &[]), &reports) else { panic!() };
    assert_eq!((outcome.failed.len(), outcome.last_error.unwrap().0), (1, ErrorClass::Transient));
    assert!(matches!(verdict(&row(3, &[]), &reports), Transition::Dead(_)));
}

#[test]
fn a_refusal_beside_what_is_down_waits_for_the_rest() {
    let reports = [failed("a", ErrorClass::Terminal), failed("b", ErrorClass::Unavailable)];
    assert!(matches!(verdict(&row(3, &[]), &reports), Transition::Retry { .. } | Transition::Wait { .. }));
}

#[test]
fn a_handlers_own_delay_wins_over_the_curve() {
    let mut report = failed("a", ErrorClass::Transient);
    report.result = report.result.map_err(|f| Failure { retry_after: Some(Duration::from_secs(77)), ..f });
    let Transition::Retry { delay, .. } = verdict(&row(1, &[]), &[report]) else { panic!() };
    assert_eq!(delay, Duration::from_secs(77));
}

#[test]
fn a_row_dies_of_crashes_only_when_it_ran_alone() {
    assert_eq!(decide_expired(3, true, 3), Expiry::Dead);
    assert_eq!(decide_expired(2, true, 3), Expiry::RunAlone);
    assert_eq!(decide_expired(3, false, 3), Expiry::RunAlone);
    assert_eq!(decide_expired(9, false, 3), Expiry::RunAlone);
}

#[test]
fn stored_error_texts_have_no_nul_and_a_bounded_length() {
    let failure = Failure::new(ErrorClass::Transient, &format!("a\0b{}", "ü".repeat(5_000)));
    assert_eq!(failure.error.chars().count(), MAX_ERROR_CHARS);
    assert!(failure.error.starts_with("abü"));
}
