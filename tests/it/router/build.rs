use super::{Counter, Mailer, PingSent, accept, accept_ping};
use outbox_core::{
    HandlerError, OutboxEvent, Router, RouterBuilder, State, router::RouterError, store::Route,
};
use outbox_tests::events::{NoteTaken, OrderPlaced};
use std::any::type_name;

async fn mail(_: OrderPlaced, State(_): State<Mailer>) -> Result<(), HandlerError> {
    Ok(())
}

/// What is wrong with a router, one text for each thing.
fn errors(builder: RouterBuilder) -> Vec<String> {
    builder.build().unwrap_err().errors().iter().map(ToString::to_string).collect()
}

fn here(line: u32) -> String {
    format!("{}:{line}", file!())
}

#[test]
fn two_handlers_under_one_id_are_refused_with_both_places() {
    let (builder, first) = (Router::builder().on("mail.confirm-order", accept), line!());
    let (builder, second) = (builder.state(Mailer("smtp")).on("mail.confirm-order", mail), line!());
    let text = format!(
        "handler id \"mail.confirm-order\" is used twice, at {} and at {}; give each handler its own id",
        here(first),
        here(second)
    );
    assert_eq!(errors(builder), [text]);
}

#[test]
fn an_id_that_a_discovered_handler_has_is_refused_to_another() {
    let (builder, line) = (Router::builder().discover().on("router-tests.accept-ping", accept), line!());
    let declared = include_str!("mod.rs").lines().position(|line| line.starts_with("async fn accept_ping"));
    let (module, declared) = (file!().replace("build.rs", "mod.rs"), declared.unwrap() + 1);
    let text = format!(
        "handler id \"router-tests.accept-ping\" is used twice, at {module}:{declared} and at {}; give each handler its own id",
        here(line)
    );
    assert_eq!(errors(builder), [text]);
}

#[test]
fn a_state_that_a_handler_takes_must_be_given() {
    let (builder, line) = (Router::builder().on("mail.confirm-order", mail), line!());
    let text = format!(
        "handler \"mail.confirm-order\" ({}) needs a state of type {}, but the router was given none; add .state(...)",
        here(line),
        type_name::<Mailer>()
    );
    assert_eq!(errors(builder), [text]);
    assert!(Router::builder().on("mail.confirm-order", mail).state(Mailer("smtp")).build().is_ok());
}

#[test]
fn a_second_state_of_one_type_is_refused() {
    let (builder, line) = (Router::builder().state(Mailer("smtp")).state(Mailer("other")), line!());
    let text = format!(
        "state {} is given a second time at {}; wrap one of them in a type of its own",
        type_name::<Mailer>(),
        here(line)
    );
    assert_eq!(errors(builder), [text]);
}

#[test]
fn a_handler_that_is_expected_and_not_linked_is_an_error() {
    let ids = ["router-tests.report-ping", "search.index-order", "router-tests.accept-ping"];
    let (builder, line) = (Router::builder().expect(ids).discover(), line!());
    let text = format!(
        "handler \"search.index-order\", expected at {}, is not registered; is its crate linked? Refer to it once, e.g. `use that_crate as _;`, and call .discover()",
        here(line)
    );
    assert_eq!(errors(builder), [text]);
    // Without `discover()` none of them is there.
    assert_eq!(errors(Router::builder().expect(ids)).len(), 3);
}

#[test]
fn an_id_outside_the_grammar_is_refused_by_every_way_of_registering() {
    let (builder, first) = (Router::builder().on("Mail", accept), line!());
    let long = format!("mail.{}", "x".repeat(196));
    let (builder, second) = (builder.on(&long, accept), line!());
    let counter = Counter::default();
    let (builder, third) = (builder.on_struct("stats.count_orders", counter), line!());
    let example = "is not two or more lowercase kebab-case segments, such as \"mail.confirm-order\"";
    let expected = [
        format!("handler id \"Mail\" ({}) {example}", here(first)),
        format!("handler id \"{long}\" ({}) has 201 bytes, the limit is 200", here(second)),
        format!("handler id \"stats.count_orders\" ({}) {example}", here(third)),
    ];
    assert_eq!(errors(builder), expected);
}

#[test]
fn an_event_that_is_ignored_must_not_have_a_handler() {
    let builder = Router::builder().on("mail.confirm-order", accept);
    let line = line!() + 1;
    let builder = builder.ignore::<OrderPlaced>();
    let [text] = &errors(builder)[..] else { panic!("one error") };
    assert!(text.contains("event orders.order-placed.v1 is ignored at"), "{text}");
    assert!(text.contains(&format!(":{line}")) && text.contains("\"mail.confirm-order\""), "{text}");
}

/// Only the text. Two such types in this binary would keep every router of every other test from being built.
#[test]
fn two_types_under_one_logical_name_are_named_with_their_places() {
    let types = ["shop::Placed (src/a.rs:1)", "billing::Placed (src/b.rs:2)"].map(str::to_owned);
    let error = RouterError::DuplicateEvent { logical_name: "orders.order-placed.v1", types };
    assert_eq!(
        error.to_string(),
        "event orders.order-placed.v1 is declared by two types, shop::Placed (src/a.rs:1) and billing::Placed (src/b.rs:2); stored rows could be read as either, so rename one"
    );
}

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    let builder = Router::builder()
        .state(Mailer("smtp"))
        .state(Mailer("other"))
        .on("Mail", accept)
        .on("stats.number-orders", accept)
        .on("stats.number-orders", accept)
        .on("mail.report-lost", |_: OrderPlaced, _: State<u8>| async { Ok::<_, HandlerError>(()) })
        .expect(["search.index-order"]);
    let error = builder.build().unwrap_err();
    let found = error.errors();
    assert!(
        matches!(
            found,
            [
                RouterError::DuplicateState { .. },
                RouterError::InvalidId { .. },
                RouterError::MissingState { .. },
                RouterError::DuplicateHandler { .. },
                RouterError::NotLinked { .. },
            ]
        ),
        "{found:#?}"
    );
    let text = error.to_string();
    let (head, rest) = text.split_once('\n').unwrap();
    assert_eq!(head, "the router cannot be built:");
    assert!(rest.lines().all(|line| line.starts_with("  - ")) && rest.lines().count() == 5, "{text}");
    assert_eq!(text.matches(&format!("{}:", file!())).count(), 6, "each with its place: {text}");
}

#[test]
fn discovering_twice_registers_once() {
    let router = Router::builder().discover().discover().build().unwrap();
    let pings: Vec<_> =
        router.handlers().filter(|(event, _)| *event == PingSent::EVENT_TYPE).map(|(_, id)| id).collect();
    assert_eq!(pings, ["router-tests.accept-ping", "router-tests.report-ping"]);
}

#[test]
fn the_routes_are_each_name_and_version_once_in_order() {
    let router = Router::builder()
        .on("pings.accept-again", accept_ping)
        .on("notes.keep-note", |_: NoteTaken| async { Ok::<_, HandlerError>(()) })
        .on("mail.confirm-order", accept)
        .on("search.index-order", accept)
        .build()
        .unwrap();
    let route = |event_type, event_version| Route { event_type, event_version };
    // A type reads its own version only, so earlier ones are no routes.
    let expected =
        [route("notes.note-taken", 1), route("orders.order-placed", 1), route("router-tests.ping-sent", 3)];
    assert_eq!(router.routes(), expected);
    assert_eq!(
        router.handlers().collect::<Vec<_>>(),
        [
            ("notes.note-taken", "notes.keep-note"),
            ("orders.order-placed", "mail.confirm-order"),
            ("orders.order-placed", "search.index-order"),
            ("router-tests.ping-sent", "pings.accept-again"),
        ]
    );
    assert_eq!(Router::builder().build().unwrap().routes(), []);
}
