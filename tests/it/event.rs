use outbox_core::{
    Envelope, EventBuffer, EventError, Ordering, OutboxEvent,
    buffer::dropped_events,
    catalog,
    envelope::MessageId,
    event::{
        DecodeError, EventDescriptor, MAX_AGGREGATE_ID_BYTES, MAX_CORRELATION_ID_BYTES, MAX_HEADERS_BYTES,
        MAX_ORDERING_KEY_BYTES, MAX_PAYLOAD_BYTES,
    },
};
use outbox_tests::events::{CustomerMoved, NoteTaken, OrderNumbered, OrderPlaced};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    fmt::Debug,
    io,
    sync::{Arc, Mutex},
};

/// An event whose written and readable forms differ.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "event-tests.address-changed", version = 3, ordering = none)]
#[serde(rename_all = "camelCase")]
struct AddressChanged {
    street_name: String,
    #[serde(default)]
    post_code: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    moved_in: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "event-tests.payment-changed", version = 1, ordering = none)]
#[serde(rename_all = "kebab-case")]
enum PaymentChanged {
    Cancelled,
    PaidInFull(i64),
    #[serde(rename_all = "camelCase")]
    PaidInPart {
        paid_cents: i64,
        left_cents: i64,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "event-tests.pair-made", version = 1, ordering = none)]
struct PairMade(u8, String);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "event-tests.name-given", version = 1, ordering = none)]
struct NameGiven(String);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "event-tests.day-ended", version = 65535, ordering = none)]
struct DayEnded;

/// Numbers at the end of what JSON libraries keep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "event-tests.values-measured", version = 1, ordering = none)]
struct ValuesMeasured {
    unsigned: u64,
    signed: i64,
    wide: i128,
    real: f64,
}

/// JSON has no keys but texts, so serde refuses to write it once there is one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "event-tests.grid-filled", version = 1, ordering = none)]
struct GridFilled {
    cells: BTreeMap<(String, String), i32>,
}

fn descriptor<E: OutboxEvent>() -> &'static EventDescriptor {
    let events = catalog();
    let found = events.into_iter().find(|event| event.logical_name == E::LOGICAL_NAME);
    found.unwrap_or_else(|| panic!("{} is not in the catalog", E::LOGICAL_NAME))
}

/// Writes an event as a save does, compares the text, and reads it as a relay does.
#[track_caller]
fn round_trip<E: OutboxEvent + Debug + PartialEq>(event: &E, json: &str) {
    let envelope = Envelope::new(event).unwrap();
    assert_eq!(envelope.payload, json);
    assert_eq!((&*envelope.event_type, envelope.event_version), (E::EVENT_TYPE, E::EVENT_VERSION));
    assert_eq!(E::decode(envelope.event_version, &envelope.payload).as_ref(), Ok(event));
}

#[test]
fn the_derive_gives_an_event_its_name_and_its_version() {
    assert_eq!(AddressChanged::EVENT_TYPE, "event-tests.address-changed");
    assert_eq!(AddressChanged::EVENT_VERSION, 3);
    assert_eq!(AddressChanged::LOGICAL_NAME, "event-tests.address-changed.v3");
    assert_eq!((DayEnded::EVENT_VERSION, DayEnded::LOGICAL_NAME), (65535, "event-tests.day-ended.v65535"));
}

#[test]
fn order_is_kept_by_aggregate_unless_the_event_says_otherwise() {
    let orderings = [OrderNumbered::ORDERING, OrderPlaced::ORDERING, CustomerMoved::ORDERING];
    assert_eq!(orderings, [Ordering::Aggregate, Ordering::None, Ordering::Key]);
    assert_eq!(orderings.map(Ordering::is_ordered), [true, false, true]);
    assert_eq!(CustomerMoved { customer_id: 7 }.ordering_key().as_deref(), Some("customer_id=7"));
    assert_eq!(OrderNumbered { number: 7 }.ordering_key(), None);
    let numbered = Envelope::new(&OrderNumbered { number: 7 }).unwrap().with_aggregate("order", "42");
    assert_eq!((numbered.ordering_key.as_deref(), numbered.lane()), (Some("order/42"), Some(103)));
}

#[test]
fn the_catalog_holds_every_event_of_the_binary_in_order() {
    let events = catalog();
    let keys: Vec<_> =
        events.iter().map(|event| (event.event_type, event.event_version, event.file, event.line)).collect();
    assert!(keys.is_sorted(), "{keys:#?}");
    let samples = [
        OrderPlaced::LOGICAL_NAME,
        OrderNumbered::LOGICAL_NAME,
        CustomerMoved::LOGICAL_NAME,
        NoteTaken::LOGICAL_NAME,
        DayEnded::LOGICAL_NAME,
    ];
    for sample in samples {
        assert_eq!(events.iter().filter(|event| event.logical_name == sample).count(), 1, "{sample}");
    }
}

#[test]
fn the_catalog_knows_where_an_event_is_declared() {
    let here = descriptor::<AddressChanged>();
    assert_eq!((here.module, here.file), (module_path!(), file!()));
    assert!(here.rust_type().ends_with("event::AddressChanged"), "{}", here.rust_type());
    let source = include_str!("event.rs").lines().nth(here.line as usize - 1).unwrap();
    assert_eq!(source, "struct AddressChanged {");
    let there = descriptor::<OrderNumbered>();
    assert_eq!((there.module, there.ordering), ("outbox_tests::events", Ordering::Aggregate));
}

#[test]
fn the_written_schema_promises_what_a_write_holds_and_the_readable_one_asks_for_what_a_read_needs() {
    let schemas = descriptor::<AddressChanged>().schemas();
    let names = |schema: &schemars::Schema, list: &str| {
        let value = schema.get(list).unwrap();
        let mut names: Vec<_> = match value {
            serde_json::Value::Array(names) => names.iter().map(|name| name.as_str().unwrap()).collect(),
            value => value.as_object().unwrap().keys().map(String::as_str).collect(),
        };
        names.sort_unstable();
        names.join(" ")
    };
    for schema in [&schemas.written, &schemas.readable] {
        assert_eq!(names(schema, "properties"), "movedIn postCode streetName");
        assert_eq!(schema.get("$schema").unwrap(), "https://json-schema.org/draft/2020-12/schema");
    }
    // A default is always written and need not be there to read; what may be skipped is promised by neither.
    assert_eq!(names(&schemas.written, "required"), "postCode streetName");
    assert_eq!(names(&schemas.readable, "required"), "streetName");
}

#[test]
fn what_serde_renames_skips_and_defaults_is_stored_and_read_so() {
    let mut event =
        AddressChanged { street_name: "Elm".into(), post_code: "1".into(), moved_in: Some("May".into()) };
    round_trip(&event, r#"{"streetName":"Elm","postCode":"1","movedIn":"May"}"#);
    event.moved_in = None;
    round_trip(&event, r#"{"streetName":"Elm","postCode":"1"}"#);
    event.post_code.clear();
    // As an older build wrote it, before there was a post code.
    assert_eq!(AddressChanged::decode(3, r#"{"streetName":"Elm"}"#), Ok(event));
}

#[test]
fn enums_tuples_and_units_are_events_too() {
    round_trip(&PaymentChanged::Cancelled, r#""cancelled""#);
    round_trip(&PaymentChanged::PaidInFull(-5), r#"{"paid-in-full":-5}"#);
    round_trip(
        &PaymentChanged::PaidInPart { paid_cents: 1, left_cents: 2 },
        r#"{"paid-in-part":{"paidCents":1,"leftCents":2}}"#,
    );
    round_trip(&PairMade(255, "b".into()), r#"[255,"b"]"#);
    round_trip(&NameGiven("a \"quoted\" \u{0} 🚀".into()), r#""a \"quoted\" \u0000 🚀""#);
    round_trip(&DayEnded, "null");
}

#[test]
fn numbers_come_back_as_they_were_raised() {
    // A reader that rounds twice changes the last bit of some of these reals.
    let reals = [0.1, f64::MIN_POSITIVE, f64::MAX, 31.245_270_191_439_438, 121.486_791_951_611_26, -0.0];
    for real in reals {
        let event = ValuesMeasured { unsigned: u64::MAX, signed: i64::MIN, wide: i128::MIN, real };
        let envelope = Envelope::new(&event).unwrap();
        let read = ValuesMeasured::decode(1, &envelope.payload).unwrap();
        assert_eq!(read, event);
        assert_eq!(read.real.to_bits(), real.to_bits(), "{real}");
    }
}

#[test]
fn a_number_that_json_has_no_word_for_is_refused_when_it_is_raised() {
    for real in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let event = ValuesMeasured { unsigned: 0, signed: 0, wide: 0, real };
        let raised = Envelope::new(&event);
        // Written as null it would be a dead letter that nothing can read.
        assert!(
            matches!(raised, Err(EventError::Encode { .. })),
            "{real}: {:?}",
            raised.map(|envelope| envelope.payload)
        );
    }
}

#[test]
fn a_version_that_the_type_does_not_read_is_refused() {
    let payload = r#"{"streetName":"Elm"}"#;
    for version in [0, 1, 2, 4, u16::MAX] {
        assert!(!AddressChanged::reads(version));
        let error = AddressChanged::decode(version, payload).unwrap_err();
        assert_eq!(
            error,
            DecodeError::UnsupportedVersion { event: "event-tests.address-changed.v3", version }
        );
    }
    let error = AddressChanged::decode(2, payload).unwrap_err().to_string();
    assert_eq!(error, "payload version 2 cannot be read as event-tests.address-changed.v3");
    assert!(AddressChanged::reads(3));
}

#[test]
fn a_payload_may_have_a_mebibyte_and_not_a_byte_more() {
    let overhead = Envelope::new(&NoteTaken { text: String::new() }).unwrap().payload.len();
    let note = |bytes: usize| NoteTaken { text: "x".repeat(bytes - overhead) };
    assert_eq!(MAX_PAYLOAD_BYTES, 1_048_576);
    let largest = Envelope::new(&note(MAX_PAYLOAD_BYTES)).unwrap();
    assert_eq!((largest.payload.len(), largest.check()), (MAX_PAYLOAD_BYTES, Ok(())));
    let id = MessageId::new();
    let error = Envelope::with_id(id, &note(MAX_PAYLOAD_BYTES + 1)).unwrap_err();
    let event = NoteTaken::LOGICAL_NAME.to_owned();
    let (bytes, limit) = (MAX_PAYLOAD_BYTES + 1, MAX_PAYLOAD_BYTES);
    assert_eq!(error, EventError::PayloadTooLarge { event, message_id: id, bytes, limit });
    assert_eq!(
        error.to_string(),
        format!(
            "the payload of event notes.note-taken.v1 ({id}) has 1048577 bytes, the limit is 1048576. Nothing was saved; store the large part elsewhere and put a reference into the event"
        )
    );
    // The size is that of the JSON: a character that is escaped counts as it is stored.
    let escaped = NoteTaken { text: "\u{1}".repeat(MAX_PAYLOAD_BYTES / 6 + 1) };
    assert!(matches!(Envelope::new(&escaped), Err(EventError::PayloadTooLarge { .. })));
}

#[test]
fn an_event_that_serde_cannot_write_is_refused_without_a_word_of_its_payload() {
    let cells = BTreeMap::from([(("secret".to_owned(), "key".to_owned()), 77_777)]);
    let id = MessageId::new();
    let error = Envelope::with_id(id, &GridFilled { cells }).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "event event-tests.grid-filled.v1 ({id}) cannot be written as JSON: key must be a string. Nothing was saved; mend its `Serialize`"
        )
    );
    assert!(Envelope::new(&GridFilled { cells: BTreeMap::new() }).is_ok());
}

fn note() -> Envelope {
    Envelope::new(&NoteTaken { text: String::new() }).unwrap()
}

/// The same envelope with one text of a given length, or with a NUL in it; and what the error calls the text.
type Column = (&'static str, usize, fn(&str) -> Envelope);

/// Every text that becomes a column and that a caller can choose.
const COLUMNS: [Column; 4] = [
    ("aggregate id", MAX_AGGREGATE_ID_BYTES, |text| note().with_aggregate("note", text)),
    // The caller's key is stored behind a `=`.
    ("ordering key", MAX_ORDERING_KEY_BYTES - 1, |text| note().with_ordering_key(text)),
    ("correlation id", MAX_CORRELATION_ID_BYTES, |text| note().with_correlation_id(text)),
    // The limit of `#[aggregate(name = …)]`.
    ("aggregate type", 100, |text| note().with_aggregate(text, "1")),
];

#[test]
fn a_text_that_is_longer_than_its_column_is_refused() {
    for (field, limit, envelope) in COLUMNS {
        assert_eq!(envelope(&"x".repeat(limit)).check(), Ok(()), "{field}");
        let error = envelope(&"x".repeat(limit + 1)).check();
        let Err(EventError::TooLong { field: named, bytes, limit, .. }) = &error else {
            panic!("{field}: {error:?}");
        };
        assert_eq!((*named, *bytes), (field, limit + 1));
        // Bytes count, not characters.
        assert!(envelope(&"ü".repeat(limit / 2 + 1)).check().is_err(), "{field}");
    }
    let error = note().with_aggregate("note", &"x".repeat(256)).check().unwrap_err().to_string();
    assert!(error.starts_with("the aggregate id of event notes.note-taken.v1 ("), "{error}");
    assert!(error.ends_with(") has 256 bytes, the limit is 255. Nothing was saved"), "{error}");
}

#[test]
fn a_text_with_nul_is_refused_where_a_database_would_refuse_it() {
    for (field, _, envelope) in COLUMNS {
        let error = envelope("a\0b").check();
        let Err(EventError::Nul { field: named, .. }) = &error else {
            panic!("{field}: {error:?}");
        };
        assert_eq!(*named, field);
        assert!(error.unwrap_err().to_string().ends_with("Nothing was saved; remove it"));
    }
    // Payload and headers are JSON, where NUL is written as an escape.
    let envelope = note().with_header("a\0", "b\0");
    assert_eq!((envelope.check(), envelope.headers_json().as_str()), (Ok(()), r#"{"a\u0000":"b\u0000"}"#));
}

#[test]
fn the_headers_of_a_message_have_a_limit_together() {
    let filled = |bytes: usize| note().with_header("h", "x".repeat(bytes - r#"{"h":""}"#.len()));
    assert_eq!(filled(MAX_HEADERS_BYTES).check(), Ok(()));
    let error = filled(MAX_HEADERS_BYTES + 1).check().unwrap_err();
    assert!(matches!(error, EventError::TooLong { field: "headers", bytes: 65_537, limit: 65_536, .. }));
    let many = (0..5000).fold(note(), |envelope, n| envelope.with_header(format!("header-{n}"), "v"));
    assert!(many.check().is_err());
}

#[test]
fn an_event_ordered_by_its_aggregate_needs_one() {
    let envelope = Envelope::new(&OrderNumbered { number: 1 }).unwrap();
    let id = envelope.message_id;
    let error = envelope.check().unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "event orders.order-numbered.v1 ({id}) is ordered by its aggregate, but it was appended without one. Nothing was saved; raise it on the aggregate, use `append_ordered` with a key, or declare `ordering = none`"
        )
    );
    assert_eq!(envelope.clone().with_aggregate("order", "1").check(), Ok(()));
    assert_eq!(envelope.with_ordering_key("tenant").check(), Ok(()));
}

#[test]
fn a_message_that_is_printed_shows_no_value_of_its_payload() {
    let envelope = Envelope::new(&NoteTaken { text: "alice@example.com".into() }).unwrap();
    let envelope = envelope.with_aggregate("note", "17").with_header("token", "bearer");
    let moved = Envelope::new(&CustomerMoved { customer_id: 987_654_321 }).unwrap();
    for (printed, value) in [
        (format!("{envelope:?} {envelope:#?}"), "alice"),
        (format!("{envelope:?} {envelope:#?}"), "bearer"),
        // The key of an event ordered by a field is a value of its payload.
        (format!("{moved:?} {moved:#?}"), "987654321"),
    ] {
        assert!(!printed.contains(value), "{printed}");
    }
    let id = envelope.message_id;
    assert_eq!(
        format!("{envelope:?}"),
        format!(
            r#"Envelope {{ message_id: MessageId({id}), event: "notes.note-taken.v1", aggregate_type: Some("note"), aggregate_id: Some("17"), payload_bytes: 28, .. }}"#
        )
    );
}

#[test]
fn an_error_of_decoding_shows_where_and_never_what() {
    let payloads = [
        r#"{"streetName":["alice"]}"#,
        r#"{"streetName":"alice","postCode":4711}"#,
        r#"{"alice":4711}"#,
        r#"{"streetName":"alice","streetName":"4711"}"#,
        r#""alice""#,
        r#"{"streetName":"alice"#,
        "alice 4711",
        "",
    ];
    for payload in payloads {
        let error = AddressChanged::decode(3, payload).unwrap_err();
        let printed = format!("{error} {error:?} {error:#?}");
        assert!(!printed.contains("alice") && !printed.contains("4711"), "{printed}");
        assert!(printed.contains("line 1, column "), "{printed}");
    }
    let unknown = PaymentChanged::decode(1, r#""alice""#).unwrap_err();
    assert_eq!(unknown.to_string(), "the payload does not fit the event's type (line 1, column 7)");
    let cut = AddressChanged::decode(3, r#"{"streetName":"#).unwrap_err();
    assert_eq!(cut.to_string(), "the payload is not valid JSON (line 1, column 14)");
}

/// What one thread logs while `run` runs. Other tests of the process log elsewhere.
fn logged(run: impl FnOnce()) -> String {
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let log = Log::default();
    let writer = log.clone();
    let subscriber =
        tracing_subscriber::fmt().with_writer(move || writer.clone()).with_ansi(false).without_time();
    tracing::subscriber::with_default(subscriber.finish(), run);
    String::from_utf8(log.0.lock().unwrap().clone()).unwrap()
}

/// A buffer with so many events, all with a payload that nothing may show.
fn raised(events: usize) -> EventBuffer<u64> {
    let mut buffer = EventBuffer::default();
    (0..events).for_each(|_| buffer.raise(NoteTaken { text: "alice".into() }));
    buffer
}

#[test]
fn events_that_are_dropped_unsaved_are_counted_and_warned_of_once() {
    // Other tests of the process may drop events too, so the count can only be too high.
    let before = dropped_events();
    let log = logged(|| drop(raised(3)));
    assert!(dropped_events() >= before + 3);
    assert_eq!(log.lines().count(), 1, "{log}");
    assert!(log.contains("WARN") && log.contains("events=3") && log.contains(r#"model="u64""#), "{log}");
    assert!(
        log.contains(
            "raised events were dropped without being saved; save the aggregate, or call discard_events()"
        ),
        "{log}"
    );
    assert!(!log.contains("alice"), "{log}");
}

#[test]
fn events_whose_payload_is_not_known_yet_are_counted_as_dropped_too() {
    let mut buffer = raised(1);
    buffer.raise_with(|saved: &u64| NoteTaken { text: saved.to_string() });
    let log = logged(|| drop(buffer));
    assert!(log.contains("events=2"), "{log}");
}

#[test]
fn a_discarded_or_empty_buffer_is_dropped_quietly() {
    let log = logged(|| {
        let mut buffer = raised(3);
        buffer.discard();
        assert!(buffer.is_empty());
        drop(buffer);
        drop(EventBuffer::<u64>::default());
    });
    assert_eq!(log, "");
    let mut buffer = raised(1);
    buffer.discard();
    buffer.raise(NoteTaken { text: "raised after it".into() });
    assert!(logged(|| drop(buffer)).contains("events=1"));
}

#[test]
fn a_buffer_keeps_the_order_and_the_ids_of_its_events_however_often_a_save_is_tried() {
    let mut buffer = EventBuffer::default();
    buffer.raise_with(|saved: &u64| NoteTaken { text: format!("lazy {saved}") });
    let id = buffer.try_raise(NoteTaken { text: "second".into() }).unwrap();
    let [first, second] = [1, 2].map(|saved| buffer.resolve(&saved).unwrap());
    let ids =
        |envelopes: &[Envelope]| envelopes.iter().map(|e| (e.message_id, e.occurred_at)).collect::<Vec<_>>();
    assert_eq!(ids(&first), ids(&second));
    assert_eq!(first[1].message_id, id);
    assert_eq!((&*first[0].payload, &*second[0].payload), (r#"{"text":"lazy 1"}"#, r#"{"text":"lazy 2"}"#));
    buffer.discard();
}

#[test]
fn an_event_that_cannot_be_stored_is_refused_at_once_or_by_the_next_save() {
    let huge = || NoteTaken { text: "x".repeat(MAX_PAYLOAD_BYTES) };
    let mut buffer = EventBuffer::<u64>::default();
    assert!(matches!(buffer.try_raise(huge()), Err(EventError::PayloadTooLarge { .. })));
    assert_eq!((buffer.len(), buffer.refusal()), (0, Ok(())));
    buffer.raise(huge());
    assert!(matches!(buffer.refusal(), Err(EventError::PayloadTooLarge { .. })));
    assert!(buffer.resolve(&0).is_err());
    buffer.discard();
    buffer.raise_with(move |_| huge());
    // What depends on the saved model can only be refused once that is known.
    assert_eq!(buffer.refusal(), Ok(()));
    assert!(buffer.resolve(&0).is_err());
    buffer.discard();
}
