//! claimed → claimed for longer.
#![allow(missing_docs)] // The names say it all.

use super::{LEASE, at, claim, ids, mark, take_over};
use crate::{
    events::{placed, placed_many},
    subject::Subject,
};
use outbox_core::{OutboxStore, RowId, decide::Transition, row::LeaseToken, store::Renewal};

async fn renew(
    subject: &impl Subject,
    rows: &[(RowId, LeaseToken)],
    seconds: i64,
) -> Vec<(RowId, LeaseToken)> {
    let renewal = Renewal { rows, lease: LEASE, now: at(seconds) };
    let renewed = subject.store().renew(&renewal).await.unwrap();
    assert_eq!(renewed.passed_over, []);
    renewed.lost
}

pub async fn a_renewed_lease_lasts_from_now_on(subject: &impl Subject) {
    let envelope = placed(1);
    subject.append(std::slice::from_ref(&envelope)).await;
    let (token, rows) = claim(subject, 1, at(0)).await;
    let mut expected = subject.row(&envelope).await;
    assert_eq!(renew(subject, &[(rows[0].id, token)], 50).await, []);
    expected.lease.as_mut().unwrap().expires_at = at(110).unwrap();
    assert_eq!(subject.row(&envelope).await, expected);
    assert_eq!(subject.store().take_over(&take_over(at(109))).await.unwrap().row, None);
    assert!(subject.store().take_over(&take_over(at(110))).await.unwrap().row.is_some());
}

pub async fn leases_of_several_claims_are_renewed_at_once(subject: &impl Subject) {
    subject.append(&placed_many(4)).await;
    let (first, rows) = claim(subject, 2, at(0)).await;
    let mut held: Vec<_> = ids(&rows).into_iter().map(|id| (id, first)).collect();
    let (second, rows) = claim(subject, 2, at(10)).await;
    held.extend(ids(&rows).into_iter().map(|id| (id, second)));
    assert_eq!(renew(subject, &held, 40).await, []);
    assert!(!subject.store().has_expired(&take_over(at(99))).await.unwrap());
    assert_eq!(renew(subject, &[], 40).await, []);
}

pub async fn a_lost_lease_is_told_and_what_it_lost_is_left_alone(subject: &impl Subject) {
    let envelopes = placed_many(3);
    let rows = subject.append(&envelopes).await;
    let (token, claimed) = claim(subject, 3, at(0)).await;
    mark(subject, token, &claimed[..1], &Transition::Dispatched, at(1)).await;
    let other = take_over(at(61));
    subject.store().take_over(&other).await.unwrap();
    let owned = subject.row(&envelopes[1]).await;
    // The first is finished, the second has another owner, the third has expired and waits for one.
    let held: Vec<_> = rows.iter().map(|id| (*id, token)).collect();
    let mut lost = renew(subject, &held, 62).await;
    lost.sort_unstable();
    assert_eq!(lost, held[..2]);
    assert_eq!(subject.row(&envelopes[1]).await, owned);
    assert_eq!(subject.row(&envelopes[0]).await.lease, None);
    assert_eq!(subject.row(&envelopes[2]).await.lease.unwrap().expires_at, at(122).unwrap());
}
