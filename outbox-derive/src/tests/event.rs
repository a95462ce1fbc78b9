//! `#[derive(OutboxEvent)]`.

use proc_macro2::TokenStream;
use syn::{DeriveInput, parse_quote};

use super::{check, contains, messages};

fn derive(input: &DeriveInput) -> TokenStream {
    crate::event::derive(input)
}

#[test]
fn the_default_policy_is_order_within_the_aggregate() {
    let input = parse_quote! {
        #[outbox(name = "orders.order-placed", version = 2)]
        pub struct OrderPlaced {
            order_id: i32,
        }
    };
    check("event", &derive(&input));
}

#[test]
fn a_field_can_be_the_ordering_key() {
    let input = parse_quote! {
        #[outbox(name = "orders.order-placed", version = 1, ordering = key(r#type), crate = crate::outbox)]
        struct OrderPlaced {
            r#type: String,
        }
    };
    check("event_key", &derive(&input));
}

#[test]
fn a_mistake_leaves_an_impl_that_registers_nothing() {
    let input = parse_quote! {
        #[outbox(name = "OrderPlaced", version = 0)]
        struct OrderPlaced;
    };
    check("event_fallback", &derive(&input));
}

#[test]
fn a_generic_event_gets_an_impl_only_where_it_is_a_payload() {
    let input = parse_quote! {
        #[outbox(name = "orders.order-placed", version = 1)]
        struct OrderPlaced<'a, T: Clone = u8, const N: usize = 1> where T: Copy {
            order_id: &'a [T; N],
        }
    };
    check("event_generic", &derive(&input));
}

#[test]
fn a_union_gets_no_impl() {
    let input = parse_quote! {
        #[outbox(name = "orders.order-placed", version = 1)]
        union OrderPlaced {
            order_id: i32,
        }
    };
    let expansion = derive(&input);
    assert_eq!(messages(expansion.clone()).len(), 1);
    assert!(!contains(&expansion, "impl"));
}

#[test]
fn all_mistakes_are_reported_in_the_order_in_which_they_stand() {
    let input = parse_quote! {
        #[outbox(nmae = "Orders.Placed", version = "2", ordering = agregate, topic = x.y(z), name, = 3)]
        #[outbox(version = 3, alias = "orders.placed" "x", crate = 1 + 1)]
        #[outbox(upcast_json(1 = f, 1 = g, 9 = h), draft = no, alias = "orders.placed")]
        struct OrderPlaced {
            #[outbox(sensitiv)]
            #[serde(rename = "a", serialize_with = "f")]
            order_id: i32,
        }
    };
    assert_eq!(
        messages(derive(&input)),
        [
            "unknown outbox attribute `nmae`; did you mean `name`?",
            "event name \"Orders.Placed\" may not contain 'O'; use lowercase kebab-case segments, e.g. \"orders.placed\"",
            "`version` takes another value: version = 1, an integer in 1..=65535",
            "unknown ordering `agregate`; did you mean `aggregate`?",
            "unknown outbox attribute `topic`; expected `name`, `version`, `ordering`, `on_dead`, `upcast_from`, \
             `upcast_json`, `alias`, `draft` or `crate`",
            "`name` needs a value: name = \"orders.order-placed\"",
            "expected `name`, `version`, `ordering`, `on_dead`, `upcast_from`, `upcast_json`, `alias`, `draft` or `crate`",
            "`version` is given twice",
            "expected `,`",
            "`crate` takes another value: crate = ::path::to::the::crate",
            "version 1 has two functions; keep one",
            "`draft` takes no value; write the word alone",
            "unknown outbox attribute `sensitiv`; did you mean `sensitive`?",
            "the schema would not match what serde uses here; add #[schemars(with = \"...\")] with a type that is \
             written the same way, or #[schemars(schema_with = \"...\")]",
            "alias \"orders.placed\" is given twice",
            "version 9 is not older than the event's own version 3; `upcast_json` names the versions that came before it",
        ]
    );
}

#[test]
fn an_older_version_is_read_through_its_type() {
    let input = parse_quote! {
        #[outbox(name = "orders.order-placed", version = 3, upcast_from = old::OrderPlaced, alias = "orders.placed")]
        pub struct OrderPlaced {
            #[outbox(sensitive)]
            email: Option<Sealed<String>>,
        }
    };
    check("event_upcast", &derive(&input));
}

#[test]
fn an_older_version_is_read_through_its_json() {
    let input = parse_quote! {
        #[outbox(name = "orders.order-placed", version = 3, upcast_json(2 = from_v2, 1 = old::from_v1), draft)]
        struct OrderPlaced;
    };
    check("event_upcast_json", &derive(&input));
}

#[test]
fn the_functions_of_older_versions_are_written_in_one_way() {
    for (word, problem) in [
        ("upcast_json", "takes a function for each old version"),
        ("upcast_json()", "takes a function for each old version"),
        ("upcast_json = f", "takes a function for each old version"),
        ("upcast_json(f)", "takes a function for each old version"),
        ("upcast_json(1)", "takes a function for each old version"),
        ("upcast_json(1 = 2)", "takes a function for each old version"),
        ("upcast_json(0 = f)", "an integer in 1..=65535"),
        ("upcast_json(70000 = f)", "an integer in 1..=65535"),
        ("upcast_json(3 = f)", "not older than the event's own version 3"),
        ("upcast_json(4 = f)", "not older than the event's own version 3"),
        ("upcast_json(1 = f, 1 = g)", "has two functions"),
        ("upcast_json(1 = f), upcast_json(2 = f)", "`upcast_json` is given twice"),
        ("upcast_json(1 = f), upcast_from = V2", "put `upcast_json` on the oldest type"),
        ("upcast_from", "needs a value"),
        ("upcast_from = 2", "takes another value"),
        ("upcast_from = A, upcast_from = B", "given twice"),
        ("draft, draft", "given twice"),
        ("alias", "needs a value"),
        ("alias = \"a\"", "needs at least two"),
        ("alias = \"a.b\"", "the event's own name"),
    ] {
        let input = format!("#[outbox(name = \"a.b\", version = 3, {word})] struct E;");
        let messages = messages(derive(&syn::parse_str(&input).unwrap()));
        assert!(messages.len() == 1 && messages[0].contains(problem), "{word}: {messages:?}");
    }
}

#[test]
fn what_is_missing_is_asked_for() {
    let nothing = parse_quote!(
        struct HTTPOrderPlaced;
    );
    assert_eq!(
        messages(derive(&nothing)),
        [
            "missing logical name: add `#[outbox(name = \"<context>.http-order-placed\", version = 1)]`; the Rust path is \
          never used, because stored rows outlive refactorings"
        ]
    );
    let no_version = parse_quote!(
        #[outbox(name = "orders.order-placed")]
        struct OrderPlaced;
    );
    assert_eq!(
        messages(derive(&no_version)),
        ["missing version of the payload: add `version = 1`, and count up when the payload changes"]
    );
    let empty: DeriveInput = parse_quote!(
        #[outbox]
        struct OrderPlaced;
    );
    assert_eq!(messages(derive(&empty)).len(), 1);
}

#[test]
fn a_value_without_its_word_is_taken_for_the_first() {
    let input = parse_quote!(
        #[outbox("order-placed", version = 1)]
        struct OrderPlaced;
    );
    assert_eq!(
        messages(derive(&input)),
        [
            "the value stands without its word: name = \"order-placed\"",
            "event name \"order-placed\" needs at least two dot-separated segments; use lowercase kebab-case segments, \
             e.g. \"orders.order-placed\"",
        ]
    );
}

#[test]
fn a_version_is_a_whole_number_that_fits() {
    for version in ["0", "65536", "-1", "99999999999999999999", "1.5", "\"1\"", "one"] {
        let input = format!("#[outbox(name = \"a.b\", version = {version})] struct E;");
        assert_eq!(messages(derive(&syn::parse_str(&input).unwrap())).len(), 1, "{version}");
    }
    for version in ["1", "65535", "0x10", "1_000"] {
        let input = format!("#[outbox(name = \"a.b\", version = {version})] struct E;");
        assert_eq!(messages(derive(&syn::parse_str(&input).unwrap())), [""; 0], "{version}");
    }
}

#[test]
fn the_key_is_a_field_that_exists() {
    for (item, problem) in [
        ("struct E { b: u8 }", "the event has no field `a`; it has `b`"),
        ("struct E {}", "the event has no field `a`; it has none"),
        ("struct E(u8);", "the struct needs named fields"),
        ("struct E;", "the struct needs named fields"),
        ("enum E { A { a: u8 } }", "an enum has no field that every variant has"),
    ] {
        let input = format!("#[outbox(name = \"a.b\", version = 1, ordering = key(a))] {item}");
        let messages = messages(derive(&syn::parse_str(&input).unwrap()));
        assert!(messages.len() == 1 && messages[0].contains(problem), "{item}: {messages:?}");
    }
    for ordering in
        ["key", "key()", "key(\"a\")", "key(a, b)", "key(a.b)", "\"none\"", "kye(a)", "random", ""]
    {
        let input =
            format!("#[outbox(name = \"a.b\", ordering = {ordering}, version = 1)] struct E {{ a: u8 }}");
        let messages = messages(derive(&syn::parse_str(&input).unwrap()));
        assert!(messages.len() == 1, "{ordering}: {messages:?}");
    }
}

#[test]
fn a_function_of_serdes_needs_a_schema() {
    for (attributes, fine) in [
        ("#[serde(serialize_with = \"f\")]", false),
        ("#[serde(rename = \"x\")] #[serde(deserialize_with = \"f\")]", false),
        ("#[serde(with = \"m\", default)]", false),
        ("#[serde(rename(serialize = \"with\"), default = \"with\")]", true),
        ("#[serde(with = \"m\")] #[schemars(with = \"String\")]", true),
        ("#[schemars(title = \"t\", schema_with = \"s\")] #[serde(serialize_with = \"f\")]", true),
        ("#[serde(with = \"m\")] #[schemars(title = \"with\")]", false),
        ("#[serde]", true),
    ] {
        for item in [
            format!("struct E {{ {attributes} a: u8 }}"),
            format!("struct E({attributes} u8);"),
            format!("enum E {{ {attributes} A(u8) }}"),
            format!("enum E {{ A {{ {attributes} a: u8 }} }}"),
        ] {
            let input = format!("#[outbox(name = \"a.b\", version = 1)] {item}");
            let messages = messages(derive(&syn::parse_str(&input).unwrap()));
            assert_eq!(messages.is_empty(), fine, "{item}: {messages:?}");
        }
    }
}

#[test]
fn two_spellings_of_a_name_claim_two_macros() {
    let claim = |name: &str| {
        let input = format!("#[outbox(name = \"{name}\", version = 1)] struct E;");
        let expansion = derive(&syn::parse_str(&input).unwrap()).to_string();
        let start = expansion.find("__outbox_event__").expect("a claim");
        expansion[start..].split(' ').next().unwrap_or_default().to_owned()
    };
    assert_eq!(claim("orders.order-placed"), "__outbox_event__orders__order_placed__v1");
    assert_ne!(claim("a.b-c"), claim("a-b.c"));
    assert_ne!(claim("a.b.c"), claim("a.b-c"));
}
