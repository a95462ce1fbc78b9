use outbox_core::{
    Envelope, ErrorClass, HandlerError, MessageContext, MessageId, OutboxEvent, Relay, Router, State, Status,
    event::DecodeError, store::Route,
};
use outbox_seaorm::{Outbox, SeaOrmStore};
use outbox_tests::{
    database::TestDatabase,
    for_each_database,
    subject::{Sql, Subject},
};
use schemars::JsonSchema;
use sea_orm::TransactionTrait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::{Arc, Mutex};

for_each_database! {
    rows_of_every_older_version_reach_the_handler_of_the_newest,
    rows_under_a_former_name_are_claimed,
    a_handler_of_an_older_version_is_given_that_version_only,
    a_payload_that_an_upcast_refuses_is_a_dead_letter_with_the_reason,
    a_version_that_is_newer_than_the_handler_waits,
}

/// Old versions are nobody else's business.
mod old {
    use super::{Deserialize, JsonSchema, OutboxEvent, Serialize};

    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, OutboxEvent)]
    #[outbox(name = "upcast-tests.order-placed", version = 1, ordering = none)]
    pub(super) struct OrderPlacedV1 {
        pub(super) order_id: i32,
        pub(super) total: f64,
    }

    #[derive(Debug, Serialize, Deserialize, JsonSchema, OutboxEvent)]
    #[outbox(name = "upcast-tests.order-placed", version = 2, ordering = none, upcast_from = OrderPlacedV1)]
    pub(super) struct OrderPlacedV2 {
        pub(super) order_id: i32,
        pub(super) total_cents: i64,
    }

    impl TryFrom<OrderPlacedV1> for OrderPlacedV2 {
        type Error = &'static str;

        fn try_from(v1: OrderPlacedV1) -> Result<Self, Self::Error> {
            if v1.total < 0.0 {
                return Err("an order has no negative total");
            }
            #[expect(clippy::cast_possible_truncation, reason = "the totals of these tests are small")]
            let total_cents = (v1.total * 100.0).round() as i64;
            Ok(Self { order_id: v1.order_id, total_cents })
        }
    }
}

use old::{OrderPlacedV1, OrderPlacedV2};

/// There never was a version 3.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "upcast-tests.order-placed", version = 4, ordering = none, upcast_from = OrderPlacedV2)]
#[outbox(alias = "upcast-tests.placed", alias = "upcast-tests.order-taken")]
struct OrderPlaced {
    order_id: i32,
    total_cents: i64,
    currency: String,
}

impl From<OrderPlacedV2> for OrderPlaced {
    fn from(v2: OrderPlacedV2) -> Self {
        Self { order_id: v2.order_id, total_cents: v2.total_cents, currency: "EUR".to_owned() }
    }
}

/// An event whose older types are gone.
#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "upcast-tests.order-paid", version = 3, ordering = none, upcast_json(1 = name_the_amount, 2 = in_cents))]
struct OrderPaid {
    cents: i64,
}

fn name_the_amount(payload: Value) -> Result<Value, String> {
    match payload {
        Value::Number(amount) => Ok(serde_json::json!({ "amount": amount })),
        _ => Err("no amount".to_owned()),
    }
}

fn in_cents(payload: Value) -> Result<Value, serde_json::Error> {
    #[derive(Deserialize)]
    struct V2 {
        amount: i64,
    }
    let V2 { amount } = serde_json::from_value(payload)?;
    Ok(serde_json::json!({ "cents": amount * 100 }))
}

/// What the handlers were given, with the version that was stored.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<(u16, i64)>>>);

impl Seen {
    fn sorted(&self) -> Vec<(u16, i64)> {
        let mut seen = self.0.lock().unwrap().clone();
        seen.sort_unstable();
        seen
    }
}

async fn newest(
    event: OrderPlaced,
    State(seen): State<Seen>,
    cx: MessageContext,
) -> Result<(), HandlerError> {
    assert!(!event.currency.is_empty());
    seen.0.lock().unwrap().push((cx.event_version(), event.total_cents));
    Ok(())
}

async fn oldest(
    event: OrderPlacedV1,
    State(seen): State<Seen>,
    cx: MessageContext,
) -> Result<(), HandlerError> {
    seen.0.lock().unwrap().push((cx.event_version(), event.order_id.into()));
    Ok(())
}

async fn write(database: &TestDatabase, envelopes: Vec<Envelope>) {
    let tx = database.db.begin().await.unwrap();
    Outbox::default().append_envelopes(&tx, &envelopes).await.unwrap();
    tx.commit().await.unwrap();
}

/// One row of each version, as the build of its time wrote it.
fn of_each_version() -> Vec<Envelope> {
    let newest = OrderPlaced { order_id: 4, total_cents: 400, currency: "USD".to_owned() };
    vec![
        Envelope::new(&OrderPlacedV1 { order_id: 1, total: 1.5 }).unwrap(),
        Envelope::new(&OrderPlacedV2 { order_id: 2, total_cents: 250 }).unwrap(),
        Envelope::new(&newest).unwrap(),
    ]
}

fn relay(database: &TestDatabase, router: Router) -> Relay<SeaOrmStore> {
    Relay::new(SeaOrmStore::new(database.db.clone()), router)
}

async fn rows_of_every_older_version_reach_the_handler_of_the_newest(database: &TestDatabase) {
    write(database, of_each_version()).await;
    let seen = Seen::default();
    let router = Router::builder().state(seen.clone()).on("tests.newest", newest).build().unwrap();
    assert_eq!(relay(database, router).pass().await.unwrap().dispatched, 3);
    assert_eq!(seen.sorted(), [(1, 150), (2, 250), (4, 400)]);
}

async fn rows_under_a_former_name_are_claimed(database: &TestDatabase) {
    let stored = |name: &str, version: u16, payload: &str| {
        Envelope::stored(MessageId::new(), name.to_owned(), version, payload.to_owned())
    };
    let rows = vec![
        stored("upcast-tests.placed", 1, r#"{"order_id":1,"total":2.5}"#),
        stored("upcast-tests.order-taken", 4, r#"{"order_id":1,"total_cents":70,"currency":"EUR"}"#),
        // Nobody's former name.
        stored("upcast-tests.order-made", 1, r#"{"order_id":1,"total":2.5}"#),
    ];
    write(database, rows).await;
    let seen = Seen::default();
    let router = Router::builder().state(seen.clone()).on("tests.newest", newest).build().unwrap();
    let handlers: Vec<_> = router.handlers().collect();
    assert_eq!(handlers, [("upcast-tests.order-placed", "tests.newest")], "listed once");
    assert_eq!(relay(database, router).pass().await.unwrap().dispatched, 2);
    assert_eq!(seen.sorted(), [(1, 250), (4, 70)]);
    assert_eq!(database.count("outbox WHERE status = 'pending'").await, 1);
}

async fn a_handler_of_an_older_version_is_given_that_version_only(database: &TestDatabase) {
    write(database, of_each_version()).await;
    let seen = Seen::default();
    let router = || Router::builder().state(seen.clone()).on("tests.oldest", oldest);
    let relay_of_old = relay(database, router().build().unwrap());
    assert_eq!(relay_of_old.pass().await.unwrap().dispatched, 1);
    assert_eq!(seen.sorted(), [(1, 1)]);
    assert_eq!(relay_of_old.pass().await.unwrap().claimed, 0, "what it does not read, it does not claim");
    // Beside the newest, each gets what it reads: the old one its own version, the new one all.
    write(database, of_each_version()).await;
    let both = router().on("tests.newest", newest).build().unwrap();
    assert_eq!(relay(database, both).pass().await.unwrap().dispatched, 5);
    assert_eq!(seen.sorted(), [(1, 1), (1, 1), (1, 150), (2, 250), (2, 250), (4, 400), (4, 400)]);
}

async fn a_payload_that_an_upcast_refuses_is_a_dead_letter_with_the_reason(database: &TestDatabase) {
    let refused = Envelope::new(&OrderPlacedV1 { order_id: 7, total: -47.11 }).unwrap();
    let malformed = Envelope::stored(
        MessageId::new(),
        "upcast-tests.order-placed".to_owned(),
        1,
        r#"{"order_id":"alice@example.com"}"#.to_owned(),
    );
    write(database, vec![refused.clone(), malformed.clone()]).await;
    let router = Router::builder().state(Seen::default()).on("tests.newest", newest).build().unwrap();
    assert_eq!(relay(database, router).pass().await.unwrap().dead, 2);
    let subject = Sql::new(database);
    for (envelope, reason) in [
        (
            &refused,
            "the payload of version 1 was not brought up to upcast-tests.order-placed.v2: an order has no negative total",
        ),
        (&malformed, "the payload does not fit the event's type (line 1, column 31)"),
    ] {
        let row = subject.row(envelope).await;
        assert_eq!((row.status, row.attempts), (Status::Dead, 1));
        assert_eq!(row.last_error, Some((ErrorClass::Decode, reason.to_owned())));
    }
}

async fn a_version_that_is_newer_than_the_handler_waits(database: &TestDatabase) {
    let newer = Envelope::stored(
        MessageId::new(),
        "upcast-tests.order-placed".to_owned(),
        5,
        r#"{"order_id":1,"total_cents":1,"currency":"EUR"}"#.to_owned(),
    );
    write(database, vec![newer.clone()]).await;
    let router = Router::builder().state(Seen::default()).on("tests.newest", newest).build().unwrap();
    assert_eq!(relay(database, router).pass().await.unwrap().claimed, 0);
    let row = Sql::new(database).row(&newer).await;
    assert_eq!((row.status, row.attempts), (Status::Pending, 0));
}

#[test]
fn the_routes_are_all_names_with_all_versions() {
    let router = Router::builder().state(Seen::default()).on("tests.newest", newest).build().unwrap();
    let names = ["upcast-tests.order-placed", "upcast-tests.order-taken", "upcast-tests.placed"];
    let expected = names.map(|event_type| [1, 2, 4].map(|event_version| Route { event_type, event_version }));
    assert_eq!(router.routes(), expected.as_flattened());
    let ignoring = Router::builder().ignore::<OrderPlaced>().build().unwrap();
    assert_eq!(ignoring.routes(), expected.as_flattened(), "what is ignored is so under each name");
    assert!(
        [1, 2, 4].into_iter().all(OrderPlaced::reads) && !OrderPlaced::reads(3) && !OrderPlaced::reads(5)
    );
}

#[test]
fn an_older_payload_is_brought_up_step_by_step_through_its_json() {
    assert_eq!(OrderPaid::decode(1, "7"), Ok(OrderPaid { cents: 700 }));
    assert_eq!(OrderPaid::decode(2, r#"{"amount":7}"#), Ok(OrderPaid { cents: 700 }));
    assert_eq!(OrderPaid::decode(3, r#"{"cents":7}"#), Ok(OrderPaid { cents: 7 }));
    let error = OrderPaid::decode(4, "7").unwrap_err();
    assert_eq!(error, DecodeError::UnsupportedVersion { event: "upcast-tests.order-paid.v3", version: 4 });
    assert!((1..=3).all(OrderPaid::reads) && !OrderPaid::reads(4) && !OrderPaid::reads(0));
}

#[test]
fn a_function_that_refuses_says_why_and_never_quotes_the_payload() {
    for (version, payload, reason) in [
        (1, "\"alice@example.com\"", "no amount"),
        (2, r#"{"amount":"alice@example.com"}"#, "the JSON does not fit the type (line 0, column 0)"),
    ] {
        let error = OrderPaid::decode(version, payload).unwrap_err();
        let event = "upcast-tests.order-paid.v3";
        assert_eq!(error, DecodeError::Refused { event, version, reason: reason.to_owned() });
        assert!(!format!("{error} {error:?}").contains("alice"));
    }
    assert!(matches!(OrderPaid::decode(1, "{"), Err(DecodeError::Syntax { .. })));
}

#[test]
fn a_version_between_that_never_was_is_not_read() {
    let error = OrderPlaced::decode(3, "{}").unwrap_err();
    assert_eq!(
        error,
        DecodeError::UnsupportedVersion { event: "upcast-tests.order-placed.v4", version: 3 },
        "the event that was asked is named, not the oldest of its chain"
    );
}
