//! pending → claimed.
#![allow(missing_docs)] // The names say it all.

use super::{LEASE, at, claim, ids, mark, request};
use crate::{
    events::{OrderNumbered, placed, placed_many},
    subject::Subject,
};
use chrono::TimeDelta;
use outbox_core::{
    Envelope, OutboxStore, Status,
    decide::{AttemptOutcome, Transition},
    store::{ClaimRequest, Route},
};
use std::{collections::BTreeSet, time::Duration};

pub async fn a_claim_counts_the_attempt_and_sets_the_lease(subject: &impl Subject) {
    let envelope = placed(1);
    subject.append(std::slice::from_ref(&envelope)).await;
    let (token, rows) = claim(subject, 10, at(0)).await;
    assert_eq!((rows.len(), rows[0].attempts, rows[0].claims), (1, 1, 1));
    assert_eq!(rows[0].envelope.message_id, envelope.message_id);
    let row = subject.row(&envelope).await;
    let lease = row.lease.unwrap();
    assert_eq!((row.status, row.attempts, row.claims), (Status::Claimed, 1, 1));
    assert_eq!((lease.token, lease.claimed_by.as_str(), lease.isolated), (token, "relay-1", false));
    assert_eq!(Some(lease.expires_at), at(0).map(|now| now + TimeDelta::from_std(LEASE).unwrap()));
}

pub async fn rows_come_in_order_and_never_more_than_asked_for(subject: &impl Subject) {
    let rows = subject.append(&placed_many(25)).await;
    let (_, first) = claim(subject, 10, at(0)).await;
    let (_, second) = claim(subject, 10, at(0)).await;
    let (_, third) = claim(subject, 10, at(0)).await;
    assert_eq!([ids(&first), ids(&second), ids(&third)].concat(), rows);
}

pub async fn a_row_under_a_live_lease_is_not_claimed(subject: &impl Subject) {
    subject.append(&placed_many(3)).await;
    assert_eq!(claim(subject, 10, at(0)).await.1.len(), 3);
    assert_eq!(claim(subject, 10, at(59)).await.1.len(), 0);
}

pub async fn a_row_with_an_expired_lease_is_left_to_the_take_over(subject: &impl Subject) {
    subject.append(&placed_many(3)).await;
    claim(subject, 10, at(0)).await;
    assert_eq!(claim(subject, 10, at(600)).await.1.len(), 0);
}

pub async fn a_row_is_not_claimed_before_it_is_due(subject: &impl Subject) {
    subject.append(&placed_many(1)).await;
    let (token, rows) = claim(subject, 1, at(0)).await;
    let later = Transition::Retry { delay: Duration::from_secs(100), outcome: AttemptOutcome::default() };
    mark(subject, token, &rows, &later, at(0)).await;
    assert_eq!(claim(subject, 1, at(99)).await.1.len(), 0);
    assert_eq!(claim(subject, 1, at(100)).await.1[0].attempts, 2);
}

pub async fn only_names_and_versions_of_the_routes_are_claimed(subject: &impl Subject) {
    let stored = |name: &str, version| {
        Envelope::stored(outbox_core::MessageId::new(), name.into(), version, "{}".into())
    };
    let unknown =
        [stored("orders.order-placed", 2), stored("orders.order-placed-later", 1), stored("a.b", 1)];
    subject.append(&unknown).await;
    let known = subject.append(&placed_many(2)).await;
    let (_, rows) = claim(subject, 10, at(0)).await;
    assert_eq!(ids(&rows), known);
    for envelope in &unknown {
        let row = subject.row(envelope).await;
        assert_eq!((row.status, row.attempts, row.claims), (Status::Pending, 0, 0));
    }
}

pub async fn several_routes_share_a_claim(subject: &impl Subject) {
    let stored = |name: &str, version| {
        Envelope::stored(outbox_core::MessageId::new(), name.into(), version, "{}".into())
    };
    let mut rows = subject.append(&[stored("a.b", 1), stored("a.b", 2), stored("c.d", 7)]).await;
    rows.remove(1);
    let routes =
        [Route { event_type: "a.b", event_version: 1 }, Route { event_type: "c.d", event_version: 7 }];
    let request = ClaimRequest { routes: &routes, ..request(9, at(0)) };
    let claimed = subject.store().claim(&request);
    assert_eq!(ids(&claimed.await.unwrap().rows), rows);
    let request = ClaimRequest { routes: &[], ..request };
    let none = subject.store().claim(&request);
    assert_eq!(none.await.unwrap().rows, []);
}

pub async fn the_event_that_has_waited_longest_is_claimed_first(subject: &impl Subject) {
    let stored = |name: &str| Envelope::stored(outbox_core::MessageId::new(), name.into(), 1, "{}".into());
    let routes = ["a.b", "c.d", "e.f"].map(|event_type| Route { event_type, event_version: 1 });
    let mut rows = Vec::new();
    for name in ["e.f", "a.b", "c.d", "e.f"] {
        rows.extend(subject.append(&[stored(name)]).await);
        // Stamps of rows that are stored one after the other are as fine as the database's clock.
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let claim = async |limit| {
        let request = ClaimRequest { routes: &routes, ..request(limit, at(0)) };
        ids(&subject.store().claim(&request).await.unwrap().rows)
    };
    assert_eq!(claim(3).await, [rows[0], rows[1], rows[3]], "all of the first event, then the next");
    assert_eq!(claim(3).await, [rows[2]]);
}

pub async fn an_ordered_row_is_never_claimed_as_if_it_were_unordered(subject: &impl Subject) {
    let ordered = Envelope::new(&OrderNumbered { number: 1 }).unwrap().with_aggregate("order", "1");
    let keyed = placed(1).with_ordering_key("a key");
    subject.append(&[ordered, keyed]).await;
    let routes = [
        Route { event_type: "orders.order-numbered", event_version: 1 },
        Route { event_type: "orders.order-placed", event_version: 1 },
    ];
    let request = ClaimRequest { routes: &routes, ..request(9, at(0)) };
    let claimed = subject.store().claim(&request);
    assert_eq!(claimed.await.unwrap().rows, []);
}

pub async fn a_page_of_unclaimable_rows_does_not_hold_up_later_ones(subject: &impl Subject) {
    let stored =
        |_| Envelope::stored(outbox_core::MessageId::new(), "nobody.knows-this".into(), 1, "{}".into());
    subject.append(&(0..30).map(stored).collect::<Vec<_>>()).await;
    subject.append(&placed_many(30)).await;
    claim(subject, 10, at(0)).await;
    claim(subject, 10, at(100)).await;
    assert_eq!(claim(subject, 10, at(100)).await.1.len(), 10);
}

pub async fn claims_at_the_same_instant_share_no_row(subject: &impl Subject) {
    subject.append(&placed_many(200)).await;
    let mut claims = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let store = subject.store().clone();
        claims.spawn(async move {
            let mut rows = Vec::new();
            loop {
                let claimed = store.claim(&request(7, at(0))).await.unwrap().rows;
                if claimed.is_empty() {
                    break rows;
                }
                rows.extend(claimed.into_iter().map(|row| row.id));
            }
        });
    }
    let rows = claims.join_all().await.concat();
    // A claimer may see nothing while others hold the last rows, so leftovers are claimed here.
    let leftover = ids(&claim(subject, 200, at(0)).await.1);
    let rows = [rows, leftover].concat();
    assert_eq!(rows.len(), 200);
    assert_eq!(rows.iter().collect::<BTreeSet<_>>().len(), 200);
}
