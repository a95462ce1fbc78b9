//! Pauses and live relays.
#![allow(missing_docs)] // The names say it all.

use super::at;
use crate::subject::Subject;
use outbox_core::{
    OutboxStore,
    store::{Announcement, HandlerSets, OutboxOperator, Pause},
};
use std::time::Duration;

pub async fn a_pause_is_told_with_its_author_until_it_is_resumed(subject: &impl Subject) {
    let store = subject.store();
    let pauses =
        [Pause::All, Pause::Event("orders.order-placed".into()), Pause::Handler("mail.confirm-order".into())];
    for pause in &pauses {
        store.pause(pause, "someone", None).await.unwrap();
        store.pause(pause, "ann", Some("the mail server is down")).await.unwrap();
    }
    let told = store.control(None).await.unwrap().pauses;
    let told: Vec<_> = told.iter().map(|entry| (&entry.pause, &*entry.by, entry.reason.as_deref())).collect();
    let expected: Vec<_> =
        pauses.iter().map(|pause| (pause, "ann", Some("the mail server is down"))).collect();
    assert_eq!(told, expected);
    for pause in &pauses {
        assert!(store.resume(pause).await.unwrap());
        assert!(!store.resume(pause).await.unwrap(), "it is not paused any more");
    }
    assert_eq!(store.control(None).await.unwrap().pauses, []);
}

pub async fn a_relay_is_known_until_it_has_been_silent_for_too_long(subject: &impl Subject) {
    let store = subject.store();
    let handlers: HandlerSets =
        [("orders.order-placed.v1".to_owned(), ["mail.confirm-order".to_owned()].into())].into();
    let say = async |relay: &str, seconds| {
        let lasts = Duration::from_secs(30);
        let announcement = Announcement { relay, handlers: &handlers, proceed: &[], lasts, now: at(seconds) };
        store.announce(&announcement).await.unwrap();
    };
    let known = async |seconds| {
        let relays = store.control(at(seconds)).await.unwrap().relays;
        assert!(relays.iter().all(|relay| relay.handlers == handlers));
        relays.into_iter().map(|relay| relay.name).collect::<Vec<_>>()
    };
    say("first", 0).await;
    say("second", 0).await;
    say("second", 20).await;
    assert_eq!(known(29).await, ["first", "second"]);
    assert_eq!(known(31).await, ["second"]);
    store.withdraw("second").await.unwrap();
    assert_eq!(known(31).await, [""; 0]);
}
