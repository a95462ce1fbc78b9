use outbox_core::catalog::{Breaks, differences_between};
use schemars::Schema;
use serde_json::{Value, json};

/// The rules that a writer and a reader break.
fn rules(written: &Value, readable: &Value) -> Vec<&'static str> {
    let schema = |json: &Value| Schema::try_from(json.clone()).unwrap();
    let found = differences_between(&schema(written), &schema(readable), Breaks::StoredRows);
    found.into_iter().map(|difference| difference.rule).collect()
}

#[test]
fn what_the_check_does_not_understand_is_refused() {
    let any_object = json!({ "type": "object" });
    for keyword in
        ["minProperties", "not", "if", "dependentRequired", "propertyNames", "contains", "newer-word"]
    {
        let mut limited = any_object.clone();
        limited[keyword] = json!({});
        assert_eq!(rules(&any_object, &limited), ["cannot-prove"], "{keyword}");
        assert_eq!(rules(&limited, &any_object), ["cannot-prove"], "{keyword}");
        assert_eq!(rules(&limited, &limited), [""; 0], "{keyword} on both sides is the same");
        let mut other = limited.clone();
        other[keyword] = json!({ "type": "string" });
        assert_eq!(rules(&limited, &other), ["cannot-prove"], "{keyword}");
        // The second word that is not understood counts as well as the first.
        limited["another"] = json!(1);
        other = limited.clone();
        other["another"] = json!(2);
        assert_eq!(rules(&limited, &other), ["cannot-prove"], "{keyword}");
    }
}

#[test]
fn an_extension_that_says_nothing_about_the_json_is_passed_over() {
    let plain = json!({ "type": "string" });
    let extended = json!({ "type": "string", "x-widget": "textarea" });
    assert_eq!((rules(&plain, &extended), rules(&extended, &plain)), (vec![], vec![]));
}

#[test]
fn definitions_that_would_be_endless_when_written_out_are_compared() {
    // Each level holds the next one twice: written out they are a million.
    let mut levels = serde_json::Map::new();
    for level in 0..20 {
        let next = json!({ "$ref": format!("#/$defs/level-{}", level + 1) });
        let name = format!("level-{level}");
        levels.insert(
            name,
            json!({ "type": "object", "properties": { "a": next, "b": next }, "required": ["a"] }),
        );
    }
    levels.insert("level-20".to_owned(), json!({ "type": "integer", "format": "uint8" }));
    let mut schema = json!({ "$ref": "#/$defs/level-0", "$defs": levels });
    let before = schema.clone();
    assert_eq!(rules(&before, &schema), [""; 0]);
    schema["$defs"]["level-20"]["format"] = json!("int8");
    assert!(!rules(&before, &schema).is_empty());
}

#[test]
fn more_alternatives_than_can_be_compared_are_refused() {
    let choice = |field: &str| {
        let of = |value: u8| json!({ "type": "object", "properties": { field: { "const": value } }, "required": [field] });
        json!({ "oneOf": (0..20).map(of).collect::<Vec<_>>() })
    };
    let few = json!({ "allOf": [choice("a"), choice("b")] });
    let many = json!({ "allOf": [choice("a"), choice("b"), choice("c")] });
    assert_eq!(rules(&few, &few), [""; 0]);
    assert_eq!(rules(&many, &many), ["cannot-prove"]);
}

#[test]
fn two_statements_about_one_thing_are_taken_together_or_refused() {
    let text = json!({ "type": "string" });
    let limited =
        json!({ "allOf": [{ "type": "string", "maxLength": 3 }, { "type": "string", "minLength": 1 }] });
    assert_eq!(rules(&text, &limited), ["range-narrowed"]);
    assert_eq!(rules(&limited, &limited), [""; 0]);
    // Each alone would be understood, and what they say together is not.
    let contradictory =
        json!({ "allOf": [{ "type": "string", "maxLength": 3 }, { "type": "string", "maxLength": 2 }] });
    assert_eq!(rules(&contradictory, &contradictory), ["cannot-prove"]);
    let impossible = json!({ "allOf": [{ "type": "string" }, { "type": "integer" }] });
    assert_eq!(rules(&text, &impossible), ["type-changed"]);
    assert_eq!(rules(&impossible, &text), [""; 0], "nothing is ever written");
}

#[test]
fn what_was_taken_to_hold_in_a_failed_attempt_is_forgotten() {
    // `x` is looked at within the first alternative, which fails for another reason, and again within the second.
    let x = |kind: &str| json!({ "type": "object", "properties": { "deep": { "type": kind } }, "required": ["deep"] });
    let object = |fields: Value, required: Value| json!({ "type": "object", "properties": fields, "required": required });
    let written = object(json!({ "x": x("string"), "y": { "type": "integer" } }), json!(["x", "y"]));
    let readable = json!({ "anyOf": [
        object(json!({ "x": x("integer"), "y": { "type": "string" } }), json!(["x", "y"])),
        object(json!({ "x": x("integer") }), json!(["x"])),
    ] });
    assert_eq!(rules(&written, &readable), ["type-changed"]);
}
