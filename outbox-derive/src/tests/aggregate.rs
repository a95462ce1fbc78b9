//! `#[derive(Aggregate)]`.

use proc_macro2::TokenStream;
use syn::{DeriveInput, parse_quote};

use super::{check, contains, messages};

fn derive(input: &DeriveInput) -> TokenStream {
    crate::aggregate::derive(input)
}

#[test]
fn every_field_has_its_part() {
    let input = parse_quote! {
        #[aggregate(name = "order", tables = crate::TABLES, crate = ::facade::seaorm)]
        pub(crate) struct Order {
            #[aggregate(root)]
            order: orders::ActiveModelEx,
            cache: Vec<u8>,
            #[aggregate(events)]
            raised: outbox_seaorm::EventBuffer<orders::ModelEx>,
        }
    };
    check("aggregate", &derive(&input));
}

#[test]
fn a_wrong_name_leaves_all_of_the_code() {
    let input: DeriveInput = parse_quote! {
        #[aggregate(name = "Order")]
        struct Order {
            #[aggregate(root)]
            root: orders::ActiveModel,
            #[aggregate(events)]
            events: EventBuffer<orders::Model>,
        }
    };
    let expansion = derive(&input);
    assert!(
        contains(&expansion, "fn raise<")
            && contains(&expansion, "AGGREGATE_TYPE: &'static str = \"invalid\"")
    );
    assert_eq!(
        messages(expansion),
        ["aggregate name \"Order\" may not contain 'O'; use lowercase kebab-case segments, e.g. \"order\""]
    );
}

#[test]
fn all_mistakes_are_reported_at_once() {
    let input = parse_quote! {
        #[aggregate(nam = "Order", table = 1)]
        struct Order {
            #[aggregate(rot)]
            a: orders::ActiveModel,
            #[aggregate(root, root, events)]
            b: orders::ActiveModel,
            #[aggregate(events = 1)]
            c: Vec<orders::Model>,
            #[aggregate(version)]
            d: i32,
            #[aggregate]
            e: i32,
        }
    };
    assert_eq!(
        messages(derive(&input)),
        [
            "unknown aggregate attribute `nam`; did you mean `name`?",
            "aggregate name \"Order\" may not contain 'O'; use lowercase kebab-case segments, e.g. \"order\"",
            "unknown aggregate attribute `table`; did you mean `tables`?",
            "`tables` takes another value: tables = path::to::TABLE_NAMES",
            "unknown aggregate attribute `rot`; did you mean `root`?",
            "`root` is given twice",
            "a field is the root or the event buffer, not both",
            "an aggregate has one root, and that is `a` already",
            "expected `,`",
            "unknown aggregate attribute `version`; expected `root` or `events`",
            "say what the field is: #[aggregate(root)] or #[aggregate(events)]",
            "the type of the event buffer is written `EventBuffer<your::Model>`, with the model that SeaORM gives back \
             for the root",
        ]
    );
}

#[test]
fn what_is_missing_is_asked_for() {
    let input = parse_quote!(
        struct ShopOrder {}
    );
    assert_eq!(
        messages(derive(&input)),
        [
            "missing name: add #[aggregate(name = \"shop-order\")]; it is stored with every event, so it must survive \
             renames of the struct",
            "missing root: mark the field with the SeaORM `ActiveModel` with #[aggregate(root)]",
            "missing events: mark the field with the `EventBuffer<your::Model>` with #[aggregate(events)]",
        ]
    );
}

#[test]
fn only_structs_with_named_fields_are_aggregates() {
    for (item, count) in [
        ("enum Order { A }", 1),
        ("struct Order(u8);", 1),
        ("struct Order;", 1),
        ("union Order { a: u8 }", 1),
        ("struct Order<T> { a: T }", 1),
        ("enum Order<T> { A(T) }", 2),
    ] {
        let input = format!("#[aggregate(name = \"order\")] {item}");
        let expansion = derive(&syn::parse_str(&input).unwrap());
        assert_eq!(messages(expansion.clone()).len(), count, "{item}");
        assert!(!contains(&expansion, "const _"), "{item}");
    }
}

#[test]
fn the_model_is_read_from_the_buffers_type() {
    for (ty, fine) in [
        ("EventBuffer<Model>", true),
        ("outbox_core::buffer::EventBuffer<orders::Model>", true),
        ("EventBuffer", false),
        ("EventBuffer<Model, Model>", false),
        ("EventBuffer<'static>", false),
        ("Vec<Model>", false),
        ("&'static EventBuffer<Model>", false),
        ("(EventBuffer<Model>,)", false),
    ] {
        let input = format!(
            "#[aggregate(name = \"order\")] struct Order {{ #[aggregate(root)] r: R, #[aggregate(events)] e: {ty} }}"
        );
        assert_eq!(messages(derive(&syn::parse_str(&input).unwrap())).is_empty(), fine, "{ty}");
    }
}

#[test]
fn root_and_model_are_of_one_entity() {
    for (root, model, problem) in [
        ("orders::ActiveModel", "orders::Model", None),
        ("orders::ActiveModelEx", "crate::orders::ModelEx", None),
        ("ActiveModel", "orders::Model", None),
        ("OrderRoot", "OrderModel", None),
        ("orders::ActiveModel", "OrderModel", None),
        ("<E as Entity>::ActiveModel", "lines::Model", None),
        ("orders::ActiveModelEx", "orders::Model", Some("write `EventBuffer<orders::ModelEx>`")),
        ("orders::ActiveModel", "orders::ModelEx", Some("write `EventBuffer<orders::Model>`")),
        ("orders::ActiveModel", "orders::ActiveModel", Some("write `EventBuffer<orders::Model>`")),
        ("orders::ActiveModel", "lines::Model", Some("write `EventBuffer<orders::Model>`")),
        ("crate::orders::Model", "orders::Model", Some("write `crate::orders::ActiveModel`")),
        ("ModelEx", "ModelEx", Some("write `ActiveModelEx`")),
    ] {
        let input = format!(
            "#[aggregate(name = \"order\")] struct Order {{ #[aggregate(root)] r: {root}, #[aggregate(events)] e: \
             EventBuffer<{model}> }}"
        );
        let messages = messages(derive(&syn::parse_str(&input).unwrap()));
        assert_eq!(messages.len(), usize::from(problem.is_some()), "{root}, {model}: {messages:?}");
        assert!(
            messages.iter().zip(problem).all(|(message, problem)| message.ends_with(problem)),
            "{messages:?}"
        );
    }
}
