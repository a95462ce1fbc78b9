use outbox_core::{
    Envelope, ErrorClass, EventError, HandlerError, OutboxEvent, Router, Status,
    sensitive::{KeyError, KeyRing, KeySource, Redacted, SealError, Sealed, SealingKey, with_keys},
    testing::MemoryStore,
};
use outbox_tests::{conformance::at, events::OrderPlaced};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "sensitive-tests.user-registered", version = 1, ordering = none)]
struct UserRegistered {
    user_id: i32,
    #[outbox(sensitive)]
    email: Sealed<String>,
    #[outbox(sensitive)]
    phone: Option<Redacted<String>>,
}

fn registered() -> UserRegistered {
    UserRegistered {
        user_id: 7,
        email: Sealed::new("alice@example.com".to_owned()),
        phone: Some(Redacted::new("555-0100".to_owned())),
    }
}

fn key(id: &str, byte: u8) -> SealingKey {
    SealingKey::new(id, &[byte; 32])
}

fn keys() -> KeyRing {
    KeyRing::new(key("2026-01", 1))
}

fn stored() -> String {
    with_keys(keys(), || Envelope::new(&registered()).unwrap().payload)
}

#[test]
fn a_sensitive_value_is_in_no_row_and_in_no_debug_output() {
    let payload = stored();
    let event = registered();
    let envelope = with_keys(keys(), || Envelope::new(&event).unwrap());
    for text in [&payload, &format!("{event:?}"), &format!("{envelope:?}"), &format!("{:?}", keys())] {
        assert!(!text.contains("alice@") && !text.contains("555-0100") && !text.contains("[1, 1"), "{text}");
    }
    let json: Value = serde_json::from_str(&payload).unwrap();
    assert_eq!(
        (&json["email"]["key"], &json["email"]["alg"]),
        (&"2026-01".into(), &"xchacha20poly1305".into())
    );
    assert_eq!(json["phone"], Value::Null);
}

#[test]
fn a_sealed_value_is_opened_by_who_has_the_key() {
    let read = UserRegistered::decode(1, &stored()).unwrap();
    assert_eq!((read.user_id, read.email.key()), (7, Some("2026-01")), "the rest is read without a key");
    with_keys(keys(), || {
        assert_eq!(read.email.open().unwrap(), "alice@example.com");
        assert_eq!(read.clone().email.into_inner().unwrap(), "alice@example.com");
    });
    // A key that is no longer the newest still opens what it sealed.
    let rotated = KeyRing::new(key("2026-02", 2)).with(key("2026-01", 1));
    let read = UserRegistered::decode(1, &stored()).unwrap();
    assert_eq!(with_keys(rotated, || read.email.open().cloned()).unwrap(), "alice@example.com");
}

#[test]
fn the_same_value_is_sealed_differently_each_time() {
    assert_ne!(stored(), stored());
}

struct NoKeys;
impl KeySource for NoKeys {
    fn current(&self) -> Result<SealingKey, KeyError> {
        Err(KeyError::Unavailable("the key service does not answer".to_owned()))
    }

    fn find(&self, _: &str) -> Result<SealingKey, KeyError> {
        self.current()
    }
}

#[test]
fn without_a_key_nothing_is_stored() {
    let refused = Envelope::new(&registered()).unwrap_err();
    let EventError::Seal { event, reason, .. } = &refused else { panic!("{refused:?}") };
    assert_eq!(event, "sensitive-tests.user-registered.v1");
    assert!(reason.starts_with("no key source is installed"), "{reason}");
    assert!(refused.to_string().ends_with("Nothing was saved"), "{refused}");

    let refused = with_keys(NoKeys, || Envelope::new(&registered()).unwrap_err());
    assert!(refused.to_string().contains("there is no key to seal with: the key service does not answer"));
    // Nor is it written anywhere else.
    assert!(serde_json::to_string(&registered()).is_err());
}

#[test]
fn what_cannot_be_opened_says_why_and_whether_it_may_pass() {
    let payload = stored();
    let open = |payload: &str, keys: KeyRing| {
        let read = UserRegistered::decode(1, payload).unwrap();
        with_keys(keys, || read.email.open().cloned()).unwrap_err()
    };
    let without = UserRegistered::decode(1, &payload).unwrap().email.open().cloned().unwrap_err();
    let other = || KeyRing::new(key("2026-02", 2));
    let mut changed: Value = serde_json::from_str(&payload).unwrap();
    let sealed = changed["email"]["sealed"].as_str().unwrap();
    // Behind the nonce, so that it is the value that differs.
    let (before, after) = sealed.split_at(40);
    let flipped = if after.starts_with('A') { "B" } else { "A" };
    let flipped = format!("{before}{flipped}{}", &after[1..]);
    changed["email"]["sealed"] = flipped.into();
    let named_otherwise = payload.replace("2026-01", "2026-02");
    for (error, is_final) in [
        (without, false),
        (open(&payload, other()), false),
        (open(&payload, other().with_destroyed("2026-01")), true),
        (open(&payload, KeyRing::new(key("2026-01", 9))), true),
        (open(&changed.to_string(), keys()), true),
        // The key is the right one, and its id was changed in the row.
        (open(&named_otherwise, KeyRing::new(key("2026-02", 1))), true),
        (open(&payload.replace("xchacha20poly1305", "rot13"), keys()), true),
    ] {
        assert_eq!(error.is_final(), is_final, "{error}");
        assert!(!error.to_string().contains("alice"));
    }
    let number = with_keys(keys(), || serde_json::to_string(&Sealed::new("alice".to_owned())).unwrap());
    let read: Sealed<u32> = serde_json::from_str(&number).unwrap();
    let error = with_keys(keys(), || read.open().copied()).unwrap_err();
    assert!(matches!(error, SealError::Shape { .. }) && !error.to_string().contains("alice"), "{error}");
}

#[test]
fn a_value_that_could_not_be_read_back_is_not_sealed() {
    for number in [f64::NAN, f64::INFINITY] {
        let sealed = with_keys(keys(), || serde_json::to_string(&Sealed::new(Some(number))));
        assert!(sealed.is_err());
    }
}

#[test]
fn a_value_that_is_still_sealed_is_written_as_it_is() {
    let payload = stored();
    let read = UserRegistered::decode(1, &payload).unwrap();
    // No key is needed to pass it on, as an upcast does.
    assert_eq!(serde_json::to_string(&read.email).unwrap(), {
        let json: Value = serde_json::from_str(&payload).unwrap();
        let wire = |name: &str| json["email"][name].as_str().unwrap().to_owned();
        format!("{{\"alg\":{:?},\"key\":{:?},\"sealed\":{:?}}}", wire("alg"), wire("key"), wire("sealed"))
    });
}

#[test]
fn a_redacted_value_of_an_older_row_is_dropped() {
    let row = stored().replace("\"phone\":null", "\"phone\":\"555-0100\"");
    let read = UserRegistered::decode(1, &row).unwrap();
    assert_eq!(read.phone.unwrap().get(), None);
}

/// Passes one message to a handler and returns its class and error text.
async fn error_of(builder: outbox_core::RouterBuilder, envelope: Envelope) -> (Status, ErrorClass, String) {
    let store = MemoryStore::default();
    store.append(&[envelope]).unwrap();
    let relay = outbox_core::Relay::new(store, builder.build().unwrap());
    relay.pass_at(at(0)).await.unwrap();
    let row = relay.store().rows().remove(0);
    let (class, text) = row.last_error.unwrap();
    (row.status, class, text)
}

async fn open(event: UserRegistered) -> Result<(), HandlerError> {
    event.email.open()?;
    Ok(())
}

#[tokio::test]
async fn a_handler_waits_for_a_key_and_refuses_what_can_never_be_opened() {
    let envelope = || with_keys(keys(), || Envelope::new(&registered()).unwrap());
    let opens = || Router::builder().on("tests.open", open);
    let (status, class, text) = error_of(opens(), envelope()).await;
    assert_eq!((status, class), (Status::Pending, ErrorClass::Transient), "{text}");

    let mut unknown = envelope();
    unknown.payload = unknown.payload.replace("xchacha20poly1305", "rot13");
    let (status, class, text) = error_of(opens(), unknown).await;
    assert_eq!((status, class), (Status::Dead, ErrorClass::Terminal), "{text}");
}

#[derive(Debug, thiserror::Error)]
#[error("the answer cannot be read")]
struct Unreadable(#[source] serde_json::Error);

#[tokio::test]
async fn an_error_of_serdes_that_a_handler_returns_is_stored_without_the_value() {
    let direct = |_: OrderPlaced| async {
        serde_json::from_str::<u8>("\"alice@example.com\"")?;
        Ok::<_, HandlerError>(())
    };
    let wrapped = |_: OrderPlaced| async {
        serde_json::from_str::<u8>("\"alice@example.com\"").map_err(Unreadable)?;
        Ok::<_, HandlerError>(())
    };
    let placed = || outbox_tests::events::placed(1);
    let (_, _, text) = error_of(Router::builder().on("tests.direct", direct), placed()).await;
    assert_eq!(text, "the JSON does not fit the type (line 1, column 19)");
    let (_, _, text) = error_of(Router::builder().on("tests.wrapped", wrapped), placed()).await;
    assert_eq!(text, "the answer cannot be read: the JSON does not fit the type (line 1, column 19)");
    let error = HandlerError::from(serde_json::from_str::<u8>("\"alice\"").unwrap_err());
    assert!(!format!("{error:?}").contains("alice"));
}

#[test]
fn a_serialize_written_by_hand_cannot_put_the_payload_into_the_error() {
    #[derive(Deserialize, JsonSchema, OutboxEvent)]
    #[outbox(name = "sensitive-tests.refused", version = 1, ordering = none)]
    struct Refused {
        secret: String,
    }
    impl Serialize for Refused {
        fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(serde::ser::Error::custom(format!("cannot write {}", self.secret)))
        }
    }
    let error = Envelope::new(&Refused { secret: "alice".to_owned() }).unwrap_err();
    assert!(
        error.to_string().contains("its `Serialize` refused")
            && !format!("{error} {error:?}").contains("alice")
    );
}
