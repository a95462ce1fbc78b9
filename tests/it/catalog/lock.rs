use super::{LockFile, Placed, differences, event, payload};
use outbox_core::{
    Ordering, OutboxEvent,
    catalog::{CatalogError, Check},
    event::DecodeError,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The payload of one build, in few words.
macro_rules! payloads {
    ($($name:ident { $($(#[$attribute:meta])* $field:ident: $type:ty),* $(,)? })+) => { $(
        #[derive(Serialize, Deserialize, JsonSchema)]
        #[allow(dead_code, reason = "what is not written is read by serde alone")]
        struct $name {
            $($(#[$attribute])* $field: $type),*
        }
    )+ };
}

payloads! {
    First { id: u32, note: Option<u32> }
    WithoutNote { id: u32 }
    WithOtherNote { id: u32, note: Option<String> }
    WithMore { id: u32, note: Option<u32>, #[serde(default)] more: u8 }
    Unreadable { id: u32, #[serde(skip_serializing)] secret: String }
}

/// A hand-written event, for what `Placed` has not: other names, older versions, drafts.
macro_rules! by_hand {
    ($($ident:ident = $name:literal v $version:literal of $payload:ty $(, const $constant:ident: $type:ty = $value:expr)* $(, fn $older:pat => $reader:expr)?;)+) => { $(
        #[derive(Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        struct $ident($payload);

        impl OutboxEvent for $ident {
            const EVENT_TYPE: &'static str = $name;
            const EVENT_VERSION: u16 = $version;
            const LOGICAL_NAME: &'static str = concat!($name, ".v", $version);
            const ORDERING: Ordering = Ordering::None;
            $(const $constant: $type = $value;)*

            $(fn reader(version: u16) -> Option<outbox_core::event::Reader> {
                match version {
                    $version => outbox_core::event::Reader::itself::<Self>(),
                    $older => $reader,
                    _ => None,
                }
            })?

            fn decode(_: u16, payload: &str) -> Result<Self, DecodeError> {
                outbox_core::event::decode_json(payload)
            }
        }
    )+ };
}

by_hand! {
    Draft = "catalog-tests.order-placed" v 1 of First, const IS_DRAFT: bool = true;
    OtherDraft = "catalog-tests.order-placed" v 1 of WithoutNote, const IS_DRAFT: bool = true;
    Renamed = "catalog-tests.order-taken" v 1 of WithMore, const ALIASES: &'static [&'static str] = &["catalog-tests.order-placed"];
    RenamedAndBroken = "catalog-tests.order-taken" v 1 of WithOtherNote, const ALIASES: &'static [&'static str] = &["catalog-tests.order-placed"];
    NotRenamed = "catalog-tests.order-taken" v 1 of WithMore;
    Second = "catalog-tests.order-placed" v 2 of WithOtherNote, fn 1 => outbox_core::event::Reader::itself::<Placed<First>>();
    SecondByJson = "catalog-tests.order-placed" v 2 of WithOtherNote, fn 1 => outbox_core::event::Reader::functions::<Self>();
    SecondAlone = "catalog-tests.order-placed" v 2 of WithOtherNote;
}

/// What an error begins with, without the path.
fn only_error(error: &outbox_core::catalog::CatalogErrors) -> CatalogError {
    let [only] = error.errors() else { panic!("{error}") };
    only.clone()
}

#[test]
fn a_lock_that_is_not_there_is_asked_for() {
    let lock = LockFile::new(module_path!());
    let error = lock.check(&[payload::<First>()]).unwrap_err();
    assert!(matches!(only_error(&error), CatalogError::NoLock { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains(&lock.0.display().to_string()) && text.contains("OUTBOX_LOCK=update"), "{text}");
}

#[test]
fn what_was_recorded_is_silent_and_stays_as_it_is() {
    let lock = LockFile::new("silent");
    let recorded = lock.update(&[payload::<First>()]).unwrap();
    assert_eq!(recorded.recorded, ["catalog-tests.order-placed.v1: it is new"]);
    let text = lock.text();
    for checked in [lock.check(&[payload::<First>()]), lock.update(&[payload::<First>()])] {
        assert_eq!((checked.as_ref().unwrap().events, checked.unwrap().recorded.len()), (1, 0));
    }
    assert_eq!(lock.text(), text);
    // No Rust path, no place in a file, and no order but the names'.
    for word in ["First", "catalog::", "orders.rs", "Option", "description", "$schema"] {
        assert!(!text.contains(word), "{word}: {text}");
    }
}

#[test]
fn a_change_that_breaks_nothing_has_to_be_recorded_all_the_same() {
    let lock = LockFile::new("additive");
    lock.update(&[payload::<First>()]).unwrap();
    let error = lock.check(&[payload::<WithMore>()]).unwrap_err();
    let CatalogError::Unrecorded { logical_name, .. } = only_error(&error) else { panic!("{error}") };
    assert_eq!(logical_name, "catalog-tests.order-placed.v1");
    lock.update(&[payload::<WithMore>()]).unwrap();
    lock.check(&[payload::<WithMore>()]).unwrap();
    assert_eq!(lock.text().matches("\"written\"").count(), 2, "both states are kept");
    // Back again, and forth: no state is kept twice, and the last one is the current one.
    lock.update(&[payload::<First>()]).unwrap();
    lock.check(&[payload::<First>()]).unwrap();
    assert_eq!(lock.text().matches("\"written\"").count(), 2);
    assert!(lock.check(&[payload::<WithMore>()]).is_err());
}

#[test]
fn rows_of_every_state_are_asked_because_compatibility_is_not_transitive() {
    let lock = LockFile::new("transitive");
    lock.update(&[payload::<First>()]).unwrap();
    lock.update(&[payload::<WithoutNote>()]).unwrap();
    // Each step is fine by itself; serde refuses the first rows all the same.
    let row = serde_json::to_string(&First { id: 1, note: Some(7) }).unwrap();
    assert!(serde_json::from_str::<WithoutNote>(&row).is_ok());
    assert!(serde_json::from_str::<WithOtherNote>(&row).is_err());
    let error = lock.update(&[payload::<WithOtherNote>()]).unwrap_err();
    assert_eq!(differences(&error), ["< type-changed note"]);
    let alone = LockFile::new("not-transitive");
    alone.update(&[payload::<WithoutNote>()]).unwrap();
    alone.update(&[payload::<WithOtherNote>()]).unwrap();
}

#[test]
fn a_breaking_change_says_what_it_breaks_and_what_to_do() {
    let lock = LockFile::new("breaking");
    lock.update(&[payload::<First>()]).unwrap();
    let error = lock.check(&[payload::<WithOtherNote>()]).unwrap_err();
    let text = error.to_string();
    let expected = [
        "the events do not fit their lock:",
        "\n  - catalog-tests.order-placed.v1, declared by ",
        "(orders.rs:7), changed under the same version:",
        "\n      [type-changed] note: integer (uint32) is written, and the reader takes string, null; this build cannot read rows that are stored already",
        "\n      [type-changed] note: string is written, and the reader takes integer (uint32), null; the build before this one cannot read rows that this one writes",
        "#[outbox(name = \"catalog-tests.order-placed\", version = 2, upcast_from = …)]",
    ];
    for part in expected {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
    assert_eq!(format!("{error:?}"), text);
}

#[test]
fn an_event_that_cannot_read_what_it_writes_is_refused_from_the_start() {
    let lock = LockFile::new("unreadable");
    let error = lock.update(&[payload::<Unreadable>()]).unwrap_err();
    assert_eq!(differences(&error), ["= field-not-written secret"]);
    assert!(error.to_string().contains("Give the fields that are not written #[serde(default)]"), "{error}");
    let written = serde_json::to_string(&Unreadable { id: 1, secret: "x".into() }).unwrap();
    assert!(serde_json::from_str::<Unreadable>(&written).is_err(), "and serde says the same");
}

#[test]
fn a_draft_may_change_until_it_is_one_no_longer() {
    let lock = LockFile::new("draft");
    lock.update(&[event::<Draft>()]).unwrap();
    let error = lock.check(&[event::<OtherDraft>()]).unwrap_err();
    assert!(matches!(only_error(&error), CatalogError::Unrecorded { .. }), "{error}");
    lock.update(&[event::<OtherDraft>()]).unwrap();
    lock.update(&[event::<Draft>()]).unwrap();
    assert_eq!(lock.text().matches("\"written\"").count(), 1, "nothing of a draft was stored");
    // Released, and from then on held to.
    lock.update(&[payload::<First>()]).unwrap();
    assert!(!lock.text().contains("draft"));
    let error = lock.update(&[event::<Draft>()]).unwrap_err();
    assert!(matches!(only_error(&error), CatalogError::DraftAgain { .. }), "{error}");
    assert_eq!(differences(&lock.update(&[payload::<WithOtherNote>()]).unwrap_err()).len(), 2);
}

#[test]
fn a_draft_may_be_dropped() {
    let lock = LockFile::new("dropped-draft");
    lock.update(&[event::<Draft>()]).unwrap();
    assert_eq!(lock.update(&[]).unwrap().recorded, ["catalog-tests.order-placed.v1: the draft is gone"]);
    assert!(!lock.text().contains("order-placed"));
}

#[test]
fn an_event_that_nothing_reads_any_more_is_missed_until_it_is_retired() {
    let lock = LockFile::new("gone");
    lock.update(&[payload::<First>()]).unwrap();
    for events in [vec![], vec![event::<SecondAlone>()]] {
        let error = lock.update(&events).unwrap_err();
        assert!(matches!(only_error(&error), CatalogError::Gone { .. }), "{error}");
    }
    lock.rewrite(|text| text.replace("\"version\": 1,", "\"version\": 1, \"retired\": true,"));
    lock.check(&[]).unwrap();
    lock.update(&[event::<SecondAlone>()]).unwrap();
    assert!(lock.text().contains("\"retired\": true"), "what was set by hand is kept");
}

#[test]
fn a_version_whose_type_is_gone_may_be_read_by_functions() {
    let lock = LockFile::new("functions");
    lock.update(&[payload::<First>()]).unwrap();
    lock.update(&[event::<SecondByJson>()]).unwrap();
    lock.check(&[event::<SecondByJson>()]).unwrap();
}

#[test]
fn an_older_version_that_is_read_stays_read() {
    let lock = LockFile::new("older");
    lock.update(&[payload::<First>(), event::<Second>()]).unwrap();
    let error = lock.update(&[payload::<First>(), event::<SecondAlone>()]).unwrap_err();
    assert!(matches!(only_error(&error), CatalogError::VersionUnread { version: 1, .. }), "{error}");
}

#[test]
fn a_renamed_event_reads_the_rows_of_its_former_name() {
    let lock = LockFile::new("renamed");
    lock.update(&[payload::<First>()]).unwrap();
    let error = lock.update(&[event::<NotRenamed>()]).unwrap_err();
    assert!(matches!(only_error(&error), CatalogError::Gone { .. }), "{error}");
    let error = lock.update(&[event::<RenamedAndBroken>()]).unwrap_err();
    assert_eq!(differences(&error), ["< type-changed note"]);
    lock.update(&[event::<Renamed>()]).unwrap();
    lock.check(&[event::<Renamed>()]).unwrap();
    // The former name is part of the contract from now on.
    let errors = lock.check(&[event::<NotRenamed>()]).unwrap_err();
    let removed = |error: &CatalogError| matches!(error, CatalogError::AliasRemoved { .. });
    assert!(errors.errors().iter().any(removed), "{errors}");
}

#[test]
fn everything_that_is_wrong_with_the_events_is_said_at_once() {
    let lock = LockFile::new("at-once");
    lock.update(&[payload::<First>(), event::<Renamed>()]).unwrap();
    let errors = lock.check(&[payload::<WithOtherNote>(), event::<RenamedAndBroken>()]).unwrap_err();
    assert_eq!(errors.errors().len(), 2, "{errors}");
}

#[test]
fn a_file_that_is_no_lock_is_refused_and_left_alone() {
    let lock = LockFile::new("malformed");
    lock.update(&[payload::<First>()]).unwrap();
    let text = lock.text();
    let event = "\"name\": \"catalog-tests.order-placed\"";
    for (broken, reason) in [
        ("<<<<<<< ours\n".to_owned() + &text, "line 1"),
        (text.replace("\"format\": 1", "\"format\": 2"), "it has format 2, and this version knows 1"),
        (text.replace("\"format\": 1,", ""), "it has no `format`"),
        (text.replace("\"version\"", "\"versoin\""), "unknown field"),
        ("{\"format\": 1, \"events\": [{\"name\": \"a.b\", \"version\": 1, \"states\": []}]}".to_owned(), "no state of a.b.v1"),
        (
            text.replace("\"events\": [", "\"events\": [{\"name\": \"catalog-tests.order-placed\", \"version\": 1, \"states\": [{\"written\": true, \"readable\": true}]},"),
            "it has catalog-tests.order-placed.v1 twice",
        ),
    ] {
        assert!(text.contains(event));
        lock.rewrite(|_| broken.clone());
        let error = lock.update(&[payload::<First>()]).unwrap_err();
        let CatalogError::Malformed { reason: found, .. } = only_error(&error) else { panic!("{error}") };
        assert!(found.contains(reason), "{reason}: {found}");
        assert_eq!(lock.text(), broken);
    }
}

#[test]
fn a_lock_may_be_of_one_crate_alone() {
    let lock = LockFile::new("crates");
    let ours = || Check::new(&lock.0).of_crate("outbox-tests").updating(true).run().unwrap();
    let events = ours().events;
    assert!(events >= 5 && ours().recorded.is_empty());
    let text = lock.text();
    assert!(
        text.contains("orders.order-placed") && !text.contains("router-tests."),
        "only those of the library"
    );
    let all = Check::new(&lock.0).updating(true).run().unwrap();
    assert!(all.events > events);
}
