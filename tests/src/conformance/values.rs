//! What is stored comes back as it was.
#![allow(missing_docs)] // The names say it all.

use super::{at, claim};
use crate::{
    events::{NoteTaken, placed, route},
    subject::Subject,
};
use outbox_core::{Envelope, MessageId, OutboxStore, store::ClaimRequest};

async fn round_trip(subject: &impl Subject, envelope: Envelope) {
    subject.append(std::slice::from_ref(&envelope)).await;
    let found = subject.row(&envelope).await.envelope;
    assert_eq!(found.payload, envelope.payload, "kept to the letter");
    let same = |e: &Envelope| {
        (e.message_id, e.event_type.clone(), e.event_version, e.headers.clone(), e.occurred_at)
    };
    assert_eq!(same(&found), same(&envelope));
    let more = |e: &Envelope| {
        (
            e.aggregate_type.clone(),
            e.aggregate_id.clone(),
            e.ordering_key.clone(),
            e.correlation_id.clone(),
            e.causation_id,
        )
    };
    assert_eq!(more(&found), more(&envelope));
}

pub async fn every_field_of_an_envelope_comes_back(subject: &impl Subject) {
    let envelope = placed(1)
        .with_aggregate("order", "4 2/ü🚀'\"\\")
        .with_correlation_id("request ü🚀")
        .with_causation_id(MessageId::new())
        .with_header("tenant", "a \"quoted\" ü🚀\u{0}")
        .with_header("", "");
    round_trip(subject, envelope).await;
    round_trip(subject, placed(2).with_ordering_key("a key ü🚀")).await;
    round_trip(subject, placed(3)).await;
}

pub async fn a_payload_is_kept_to_the_letter(subject: &impl Subject) {
    let payloads = [
        r#"{"b": 1,   "a": 1.10, "a": 2}"#.to_owned(),
        format!(r#"{{"max":{},"big":{},"tiny":1e-300}}"#, u64::MAX, i128::MAX),
        r#"{"nul":"\u0000","astral":"🚀","lone":"\ud83d\ude80"}"#.to_owned(),
        "null".to_owned(),
        format!("{:?}", "x".repeat(1024 * 1024 - 2)),
    ];
    for payload in payloads {
        let id = MessageId::new();
        round_trip(subject, Envelope::stored(id, "a.b".into(), u16::MAX, payload)).await;
    }
}

pub async fn texts_differ_by_case_and_accent(subject: &impl Subject) {
    // A server's default collation may take these for one text.
    let events: Vec<_> = ["A", "a", "Á", "a "].map(|text| NoteTaken { text: text.into() }).into();
    let envelopes: Vec<_> = events
        .iter()
        .map(|event| Envelope::new(event).unwrap().with_aggregate("note", &event.text))
        .collect();
    subject.append(&envelopes).await;
    let wrong = [outbox_core::store::Route { event_type: "Notes.note-taken", event_version: 1 }];
    let request = super::request(10, at(0));
    assert_eq!(subject.store().claim(&ClaimRequest { routes: &wrong, ..request }).await.unwrap().rows, []);
    let right = [route::<NoteTaken>()];
    let claimed = subject.store().claim(&ClaimRequest { routes: &right, ..request }).await.unwrap().rows;
    let found: Vec<_> = claimed.iter().map(|row| row.envelope.aggregate_id.clone().unwrap()).collect();
    assert_eq!(found, ["A", "a", "Á", "a "]);
    assert_eq!(claim(subject, 10, at(0)).await.1, []);
}
