//! Types against each other: whatever the check calls readable, serde reads. The types are every way to write a field
//! around every way to write a value; the values are made from the schema and written by serde itself.

use super::{Placed, event};
use outbox_core::{
    EventDescriptor, OutboxEvent as _,
    catalog::{Breaks, differences_between},
    event::Payload,
};
use proptest::{prelude::*, test_runner::TestRng};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

/// A payload type without its type.
struct Kind {
    name: &'static str,
    event: &'static EventDescriptor,
    /// What serde writes of this JSON, where it is one.
    write: fn(&Value) -> Option<String>,
    /// Whether serde reads this row.
    reads: fn(&str) -> bool,
}

fn kind<P: Payload>() -> Kind {
    Kind {
        name: std::any::type_name::<P>(),
        event: event::<Placed<P>>(),
        write: |json| serde_json::to_string(&P::deserialize(json).ok()?).ok(),
        reads: |row| Placed::<P>::decode(1, row).is_ok(),
    }
}

// Ways to write a value.

macro_rules! derived {
    ($($item:item)+) => { $(
        #[derive(Serialize, Deserialize, JsonSchema)]
        #[allow(dead_code)]
        $item
    )+ };
}

derived! {
    struct Unit;
    struct Named { a: u8, b: Option<String> }
    struct NamedToo { #[serde(default)] a: u16, #[serde(default, skip_serializing_if = "Option::is_none")] c: Option<bool> }
    #[serde(deny_unknown_fields)]
    struct Denying { #[serde(default)] a: u8 }
    struct Empty {}
    enum Plain { A, B }
    enum PlainToo { A, B, C }
    enum External { A, B(u8), C { a: u8 }, D(u8, u8) }
    enum ExternalToo { A, B(u16), C { a: u8, #[serde(default)] b: u8 } }
    #[serde(tag = "is")]
    enum Internal { A, C { a: u8 }, D(Named) }
    #[serde(tag = "is")]
    enum InternalToo { A, C { a: i32, b: Option<u8> } }
    #[serde(tag = "is", content = "of")]
    enum Adjacent { A, B(u8), C { a: u8 } }
    #[serde(untagged)]
    enum Untagged { A(u8), B(String), C { a: u8 } }
    #[serde(untagged)]
    enum UntaggedToo { A(i64), B { a: u8, b: u8 }, C { a: u8 } }
    struct Tree { value: u8, children: Vec<Tree> }
    struct TreeToo { value: u16, #[serde(default)] children: Vec<TreeToo>, more: Option<u8> }
    #[serde(rename_all = "kebab-case")]
    struct Cased { long_name: u8, r#type: char }
}

// Ways to write a field.

derived! {
    struct Field<T> { a: T }
    struct Optional<T> { a: Option<T> }
    #[serde(bound(deserialize = "T: Deserialize<'de>"))]
    struct Defaulted<T> { #[serde(default)] a: Option<T> }
    #[serde(bound(deserialize = "T: Deserialize<'de>"))]
    struct Skipped<T> { #[serde(default, skip_serializing_if = "Vec::is_empty")] a: Vec<T> }
    #[serde(deny_unknown_fields)]
    struct Closed<T> { a: T }
    struct Beside<T> { a: T, b: Option<u8> }
    struct Flat<T> { #[serde(flatten)] inner: Field<T>, b: Option<u8> }
    struct Rest<T> { b: Option<u8>, #[serde(flatten)] rest: BTreeMap<String, T> }
    struct New<T>(T);
    struct Pair<T>(T, u8);
    enum Variant<T> { A(T), B }
    #[serde(tag = "is")]
    enum Tagged<T> { A { a: T }, B }
    #[serde(tag = "is", content = "of")]
    enum TaggedBeside<T> { A(T), B }
    #[serde(untagged)]
    enum Either<T> { A { a: T }, B(u8) }
}

macro_rules! all_kinds {
    (@around $value:ty, [$($around:ident)+]) => { vec![$(kind::<$around<$value>>()),+] };
    ($around:tt $($value:ty),+ $(,)?) => {
        [$(
            vec![kind::<$value>(), kind::<Vec<$value>>(), kind::<BTreeMap<String, $value>>()],
            all_kinds!(@around $value, $around),
        )+]
    };
}

static KINDS: LazyLock<Vec<Kind>> = LazyLock::new(|| {
    let around = all_kinds!(
        [Field Optional Defaulted Skipped Closed Beside Flat Rest New Pair Variant Tagged TaggedBeside Either]
        u8, u16, i32, i64, u64, f32, f64, bool, char, String, Unit, Named, NamedToo, Denying, Empty, Plain, PlainToo,
        External, ExternalToo, Internal, InternalToo, Adjacent, Untagged, UntaggedToo, Tree, TreeToo, Cased, Value,
        chrono::DateTime<chrono::Utc>, uuid::Uuid,
    );
    let others = vec![
        kind::<BTreeSet<u8>>(),
        kind::<[u8; 2]>(),
        kind::<(u8, u8)>(),
        kind::<(u8, String)>(),
        kind::<BTreeMap<u8, u8>>(),
        kind::<BTreeMap<i8, u8>>(),
        kind::<Option<Option<u8>>>(),
        kind::<i128>(),
        kind::<u128>(),
        kind::<std::num::NonZeroU8>(),
    ];
    around.into_iter().flatten().chain(others).collect()
});

// Values.

/// A value of a schema, more or less: what serde makes of it decides.
fn value(root: &Value, schema: &Value, depth: usize, rng: &mut TestRng) -> Value {
    let Some(object) = schema.as_object() else { return anything(depth, rng) };
    let mut pick = |count: usize| rng.random_range(0..count.max(1));
    if let Some(name) = object.get("$ref").and_then(Value::as_str) {
        let pointer = name.trim_start_matches('#');
        return root.pointer(pointer).map_or(Value::Null, |target| value(root, target, depth + 1, rng));
    }
    if let Some(constant) = object.get("const") {
        return constant.clone();
    }
    if let Some(values) = object.get("enum").and_then(Value::as_array) {
        return values[pick(values.len())].clone();
    }
    for keyword in ["oneOf", "anyOf"] {
        if let Some(alternatives) = object.get(keyword).and_then(Value::as_array) {
            // The last ones have an end more often.
            let chosen =
                &alternatives[if depth > 6 { alternatives.len() - 1 } else { pick(alternatives.len()) }];
            let mut made = value(root, chosen, depth + 1, rng);
            let beside = fields(root, object, depth, rng);
            if let (Some(made), false) = (made.as_object_mut(), beside.is_empty()) {
                made.extend(beside);
            }
            return made;
        }
    }
    let of = match object.get("type") {
        Some(Value::Array(types)) => {
            types[if depth > 6 { types.len() - 1 } else { pick(types.len()) }].as_str()
        }
        Some(of) => of.as_str(),
        None => Some("object"),
    };
    match of.unwrap_or_default() {
        "null" => Value::Null,
        "boolean" => json!(pick(2) == 0),
        "integer" => integer(object, rng),
        "number" => [json!(0), json!(0.5), json!(-3.25), json!(1e30), json!(3)][pick(5)].clone(),
        "string" => text(object, rng),
        "array" => list(root, object, depth, rng),
        "object" => Value::Object(fields(root, object, depth, rng)),
        _ => anything(depth, rng),
    }
}

fn anything(depth: usize, rng: &mut TestRng) -> Value {
    let inner = |rng: &mut TestRng| if depth > 4 { Value::Null } else { anything(depth + 1, rng) };
    match rng.random_range(0..7) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(rng.random_range(-300..300)),
        3 => json!("a"),
        4 => json!([inner(rng)]),
        5 => json!({ "a": inner(rng) }),
        _ => json!(0.5),
    }
}

fn integer(schema: &Map<String, Value>, rng: &mut TestRng) -> Value {
    let mut candidates =
        vec![json!(0), json!(1), json!(200), json!(-1), json!(-200), json!(40_000), json!(5_000_000_000_u64)];
    candidates.extend([json!(i64::MAX), json!(u64::MAX), json!(i64::MIN), json!(-40_000)]);
    candidates.extend(schema.get("maximum").cloned());
    candidates.extend(schema.get("minimum").cloned());
    candidates.swap_remove(rng.random_range(0..candidates.len()))
}

fn text(schema: &Map<String, Value>, rng: &mut TestRng) -> Value {
    match schema.get("format").and_then(Value::as_str) {
        Some("date-time") => json!("2026-01-31T12:00:00Z"),
        Some("uuid") => json!("0191e9a0-7f2a-7c3b-8000-000000000001"),
        _ => [json!(""), json!("a"), json!("ü"), json!("long text"), json!("A")][rng.random_range(0..5)]
            .clone(),
    }
}

fn list(root: &Value, schema: &Map<String, Value>, depth: usize, rng: &mut TestRng) -> Value {
    if let Some(tuple) = schema.get("prefixItems").and_then(Value::as_array) {
        return tuple.iter().map(|item| value(root, item, depth + 1, rng)).collect();
    }
    let fewest = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0);
    let count = if depth > 4 { fewest } else { fewest.max(rng.random_range(0..3)) };
    let any = Value::Bool(true);
    let item = schema.get("items").unwrap_or(&any);
    (0..count).map(|_| value(root, item, depth + 1, rng)).collect()
}

fn fields(root: &Value, schema: &Map<String, Value>, depth: usize, rng: &mut TestRng) -> Map<String, Value> {
    let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut made = Map::new();
    for (name, field) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        if required.iter().any(|other| other == name) || rng.random_range(0..2) == 0 {
            made.insert(name.clone(), value(root, field, depth + 1, rng));
        }
    }
    if let Some(further) =
        schema.get("additionalProperties").filter(|further| **further != Value::Bool(false))
    {
        for name in ["a", "c", "is", "B"] {
            if !made.contains_key(name) && rng.random_range(0..3) == 0 {
                made.insert(name.to_owned(), value(root, further, depth + 1, rng));
            }
        }
    }
    for (pattern, further) in schema.get("patternProperties").and_then(Value::as_object).into_iter().flatten()
    {
        let name = if pattern.contains('-') { "-7" } else { "7" };
        made.insert(name.to_owned(), value(root, further, depth + 1, rng));
    }
    made
}

/// Rows as serde writes them.
fn rows(kind: &Kind, count: usize, rng: &mut TestRng) -> Vec<String> {
    let schema = kind.event.schemas().written.to_value();
    (0..count).filter_map(|_| (kind.write)(&value(&schema, &schema, 0, rng))).collect()
}

fn readable(writer: &Kind, reader: &Kind) -> bool {
    let (written, readable) = (writer.event.schemas().written, reader.event.schemas().readable);
    differences_between(&written, &readable, Breaks::StoredRows).is_empty()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_called_readable_is_read_by_serde(
        writer in any::<prop::sample::Index>(),
        readers in prop::collection::vec(any::<prop::sample::Index>(), 16),
        chance in chance(),
    ) {
        let mut chance = chance;
        let writer = writer.get(&KINDS);
        let rows = rows(writer, 20, &mut chance);
        for reader in readers.iter().map(|reader| reader.get(&KINDS)).filter(|reader| readable(writer, reader)) {
            for row in &rows {
                prop_assert!((reader.reads)(row), "{} writes {row}, and {} does not read it", writer.name, reader.name);
            }
        }
    }
}

/// Chance that belongs to the case.
fn chance() -> impl Strategy<Value = TestRng> {
    Just(()).prop_perturb(|(), rng| rng)
}

#[test]
fn every_type_reads_what_it_writes_and_the_check_says_so() {
    let mut rng = TestRng::deterministic_rng(prop::test_runner::RngAlgorithm::ChaCha);
    let mut without_rows = Vec::new();
    for kind in KINDS.iter() {
        assert!(readable(kind, kind), "{} is not called readable by itself", kind.name);
        let rows = rows(kind, 20, &mut rng);
        for row in &rows {
            assert!((kind.reads)(row), "{} writes {row}, and does not read it", kind.name);
        }
        if rows.is_empty() {
            without_rows.push(kind.name);
        }
    }
    assert!(without_rows.len() * 20 < KINDS.len(), "the test says nothing of {without_rows:#?}");
}

#[test]
fn the_check_does_not_simply_refuse_everything() {
    let of = |name: &str| KINDS.iter().find(|kind| kind.name.ends_with(name)).unwrap();
    for (writer, reader) in [
        ("Field<u8>", "Field<u16>"),
        ("Field<u8>", "Optional<u8>"),
        ("Field<u8>", "Flat<u16>"),
        ("Closed<u8>", "Beside<u8>"),
        ("differential::Plain", "differential::PlainToo"),
        ("differential::Tree", "differential::TreeToo"),
        (
            "differential::InternalToo",
            "alloc::collections::btree::map::BTreeMap<alloc::string::String, serde_json::value::Value>",
        ),
    ] {
        assert!(readable(of(writer), of(reader)), "{writer} to {reader}");
        assert!(!readable(of(reader), of(writer)), "{reader} to {writer}");
    }
}
