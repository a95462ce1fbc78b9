use super::{LockFile, differences, payload};
use outbox_core::event::Payload;

/// What a change from one payload to another breaks; `None` when it is not even worth recording.
fn change<Before: Payload, After: Payload>(test: &str) -> Option<Vec<String>> {
    let lock = LockFile::new(test);
    lock.update(&[payload::<Before>()]).unwrap();
    let before = lock.text();
    let found = lock.update(&[payload::<After>()]);
    match found {
        Ok(checked) if checked.recorded.is_empty() => {
            assert_eq!(lock.text(), before);
            None
        }
        Ok(_) => Some(Vec::new()),
        Err(errors) => {
            assert_eq!(lock.text(), before, "an update never writes over what breaks");
            Some(differences(&errors))
        }
    }
}

/// For `before => after`: what the change breaks, as `[differences]`. `silent` is no change at all.
macro_rules! changes {
    ($($name:ident: { $($before:item)+ } => { $($after:item)+ } $verdict:tt $([$($difference:literal),*])?;)+) => { $(
        #[test]
        fn $name() {
            #[allow(dead_code)]
            mod before {
                use schemars::JsonSchema;
                use serde::{Deserialize, Serialize};
                $(#[derive(Serialize, Deserialize, JsonSchema)] $before)+
            }
            #[allow(dead_code)]
            mod after {
                use schemars::JsonSchema;
                use serde::{Deserialize, Serialize};
                $(#[derive(Serialize, Deserialize, JsonSchema)] $after)+
            }
            let found = change::<before::Payload, after::Payload>(concat!("rules::", stringify!($name)));
            assert_eq!(found, changes!(@ $verdict $([$($difference),*])?), stringify!($name));
        }
    )+ };
    (@ silent) => { None::<Vec<String>> };
    (@ compatible) => { Some(Vec::<String>::new()) };
    (@ breaks [$($difference:literal),*]) => { Some(vec![$($difference.to_owned()),*]) };
}

// Fields.

changes! {
    a_field_that_is_removed_is_missed_by_the_build_before:
        { pub(super) struct Payload { a: u32, b: u32 } } => { pub(super) struct Payload { a: u32 } }
        breaks ["> field-removed b"];
    a_field_that_is_renamed_is_missed_by_both:
        { pub(super) struct Payload { a: u32 } } => { pub(super) struct Payload { b: u32 } }
        breaks ["> field-removed a", "< required-field-added b"];
    an_alias_of_serdes_does_not_help_the_build_before:
        { pub(super) struct Payload { a: u32 } } => { pub(super) struct Payload { #[serde(alias = "a", default)] b: u32 } }
        breaks ["> field-removed a"];
    a_required_field_that_is_added_is_not_in_stored_rows:
        { pub(super) struct Payload { a: u32 } } => { pub(super) struct Payload { a: u32, b: u32 } }
        breaks ["< required-field-added b"];
    a_field_with_a_default_may_be_added:
        { pub(super) struct Payload { a: u32 } } => { pub(super) struct Payload { a: u32, #[serde(default)] b: u32, c: Option<u8> } }
        compatible;
    a_field_with_a_default_may_be_removed:
        { pub(super) struct Payload { a: u32, #[serde(default)] b: u32 } } => { pub(super) struct Payload { a: u32 } }
        compatible;
    a_default_that_is_taken_away_hurts_nobody_if_the_field_was_always_written:
        { pub(super) struct Payload { #[serde(default)] a: u32 } } => { pub(super) struct Payload { a: u32 } }
        compatible;
    a_field_that_was_skipped_cannot_be_required:
        { pub(super) struct Payload { #[serde(default, skip_serializing_if = "Vec::is_empty")] a: Vec<u8> } }
        => { pub(super) struct Payload { a: Vec<u8> } }
        breaks ["< field-now-required a"];
    a_required_field_cannot_be_skipped:
        { pub(super) struct Payload { a: Vec<u8> } }
        => { pub(super) struct Payload { #[serde(default, skip_serializing_if = "Vec::is_empty")] a: Vec<u8> } }
        breaks ["> field-now-optional a"];
    an_optional_field_cannot_become_a_value:
        { pub(super) struct Payload { a: Option<u32> } } => { pub(super) struct Payload { a: u32 } }
        breaks ["< null-refused a"];
    a_value_cannot_become_optional:
        { pub(super) struct Payload { a: u32 } } => { pub(super) struct Payload { a: Option<u32> } }
        breaks ["> null-added a"];
    unknown_fields_may_be_denied_while_there_are_none:
        { pub(super) struct Payload { a: u32 } } => { #[serde(deny_unknown_fields)] pub(super) struct Payload { a: u32 } }
        compatible;
    a_field_cannot_be_added_where_unknown_ones_are_denied:
        { #[serde(deny_unknown_fields)] pub(super) struct Payload { a: u32 } }
        => { #[serde(deny_unknown_fields)] pub(super) struct Payload { a: u32, #[serde(default)] b: u32 } }
        breaks ["> field-added b"];
    a_field_cannot_be_removed_where_unknown_ones_are_denied:
        { pub(super) struct Payload { a: u32, #[serde(default)] b: u32 } }
        => { #[serde(deny_unknown_fields)] pub(super) struct Payload { a: u32 } }
        breaks ["< field-refused b"];
}

// Types.

changes! {
    a_field_of_another_type_is_read_by_nobody:
        { pub(super) struct Payload { a: u64 } } => { pub(super) struct Payload { a: String } }
        breaks ["< type-changed a", "> type-changed a"];
    a_wider_number_is_not_read_by_the_build_before:
        { pub(super) struct Payload { a: u32 } } => { pub(super) struct Payload { a: u64 } }
        breaks ["> range-widened a"];
    a_narrower_number_does_not_read_stored_rows:
        { pub(super) struct Payload { a: i64 } } => { pub(super) struct Payload { a: i32 } }
        breaks ["< range-narrowed a"];
    a_number_with_a_sign_and_one_without_differ_at_both_ends:
        { pub(super) struct Payload { a: i32 } } => { pub(super) struct Payload { a: u32 } }
        breaks ["< range-narrowed a", "> range-widened a"];
    a_whole_number_and_a_float_are_two_types:
        { pub(super) struct Payload { a: i64 } } => { pub(super) struct Payload { a: f64 } }
        breaks ["< range-narrowed a", "> type-changed a"];
    a_list_is_no_map:
        { pub(super) struct Payload { a: Vec<u8> } } => { pub(super) struct Payload { a: std::collections::BTreeMap<String, u8> } }
        breaks ["< type-changed a", "> type-changed a"];
    a_list_is_a_set_to_serde:
        { pub(super) struct Payload { a: Vec<u8> } } => { pub(super) struct Payload { a: std::collections::BTreeSet<u8> } }
        compatible;
    a_tuple_has_its_length:
        { pub(super) struct Payload(u8, u8); } => { pub(super) struct Payload(u8, u8, u8); }
        breaks ["< range-narrowed", "> range-widened"];
    an_array_of_a_length_is_a_tuple_of_it:
        { pub(super) struct Payload { a: [u8; 2] } } => { pub(super) struct Payload { a: (u8, u8) } }
        compatible;
    a_time_is_not_any_text:
        { pub(super) struct Payload { a: chrono::DateTime<chrono::Utc> } } => { pub(super) struct Payload { a: String } }
        breaks ["> format-changed a"];
    a_text_is_no_uuid:
        { pub(super) struct Payload { a: String } } => { pub(super) struct Payload { a: uuid::Uuid } }
        breaks ["< format-changed a"];
    the_keys_of_a_map_are_part_of_it:
        { pub(super) struct Payload { a: std::collections::BTreeMap<String, u8> } }
        => { pub(super) struct Payload { a: std::collections::BTreeMap<u32, u8> } }
        breaks ["< keys-changed a"];
    any_json_is_read_as_any_json_only:
        { pub(super) struct Payload { a: serde_json::Value } } => { pub(super) struct Payload { a: u8 } }
        breaks ["< type-changed a"];
    a_list_of_another_item_says_so:
        { pub(super) struct Payload { a: Vec<Option<u8>> } } => { pub(super) struct Payload { a: Vec<u8> } }
        breaks ["< null-refused a[]"];
}

// Variants.

changes! {
    a_variant_that_is_removed_is_in_stored_rows:
        { pub(super) enum Payload { A, B } } => { pub(super) enum Payload { A } }
        breaks ["< variant-removed"];
    a_variant_that_is_added_is_unknown_to_the_build_before:
        { pub(super) enum Payload { A, B } } => { pub(super) enum Payload { A, B, C } }
        breaks ["> variant-added"];
    a_variant_may_be_added_for_reading_first:
        { pub(super) enum Payload { A, B } } => { pub(super) enum Payload { A, B, #[serde(skip_serializing)] C } }
        compatible;
    a_variant_that_gets_a_value_is_another:
        { pub(super) enum Payload { A, B } } => { pub(super) enum Payload { A, B(u8) } }
        breaks ["> variant-added", "< variant-removed"];
    a_required_field_of_a_variant_is_a_required_field:
        { #[serde(tag = "is")] pub(super) enum Payload { A { a: u8 }, B } }
        => { #[serde(tag = "is")] pub(super) enum Payload { A { a: u8, b: u8 }, B } }
        breaks ["< required-field-added b"];
    the_tag_cannot_be_renamed:
        { #[serde(tag = "is")] pub(super) enum Payload { A { a: u8 }, B } }
        => { #[serde(tag = "kind")] pub(super) enum Payload { A { a: u8 }, B } }
        breaks ["> field-removed is", "< required-field-added kind"];
    a_tag_beside_is_not_a_tag_within:
        { #[serde(tag = "is")] pub(super) enum Payload { A { a: u8 } } }
        => { #[serde(tag = "is", content = "of")] pub(super) enum Payload { A { a: u8 } } }
        breaks ["> field-removed a", "< required-field-added of"];
    a_tag_outside_is_not_a_tag_within:
        { pub(super) enum Payload { A { a: u8 } } } => { #[serde(tag = "is")] pub(super) enum Payload { A { a: u8 } } }
        breaks ["> field-removed A", "> field-added a", "< required-field-added a", "> field-added is", "< required-field-added is"];
    an_untagged_variant_is_known_by_its_type:
        { #[serde(untagged)] pub(super) enum Payload { A(u8), B(String) } }
        => { #[serde(untagged)] pub(super) enum Payload { A(u8), B(bool) } }
        breaks ["> variant-added", "< variant-removed"];
}

// What is within.

changes! {
    a_field_of_a_field_is_named_by_its_path:
        { pub(super) struct Payload { to: Address } pub(super) struct Address { zip: String } }
        => { pub(super) struct Payload { to: Address } pub(super) struct Address { post_code: String } }
        breaks ["< required-field-added to.post_code", "> field-removed to.zip"];
    a_flattened_field_is_a_field:
        { pub(super) struct Payload { a: u8, #[serde(flatten)] b: B } pub(super) struct B { b: u8 } }
        => { pub(super) struct Payload { a: u8, #[serde(flatten)] b: B } pub(super) struct B { c: u8 } }
        breaks ["> field-removed b", "< required-field-added c"];
    a_flattened_map_may_hold_what_a_new_field_cannot_read:
        { pub(super) struct Payload { #[serde(flatten)] rest: std::collections::BTreeMap<String, String> } }
        => { pub(super) struct Payload { #[serde(default)] a: u8, #[serde(flatten)] rest: std::collections::BTreeMap<String, String> } }
        breaks ["< type-changed a", "> type-changed a"];
    a_recursive_type_is_compared_at_every_level:
        { pub(super) struct Payload { value: u8, next: Option<Box<Payload>> } }
        => { pub(super) struct Payload { value: u8, next: Option<Box<Payload>>, more: u8 } }
        breaks ["< required-field-added more", "< required-field-added next.more"];
    a_recursive_type_below_the_payload_is_compared_too:
        { pub(super) struct Payload { tree: Tree } #[serde(tag = "is")] pub(super) enum Tree { Leaf { value: u8 }, Node { children: Vec<Tree> } } }
        => { pub(super) struct Payload { tree: Tree } #[serde(tag = "is")] pub(super) enum Tree { Leaf { value: u16 }, Node { children: Vec<Tree> } } }
        breaks ["> range-widened tree.value"];
    an_optional_recursive_type_has_an_end:
        { #[serde(tag = "is")] pub(super) enum Payload { A { next: Option<Box<Payload>> }, B } }
        => { #[serde(tag = "is")] pub(super) enum Payload { A { next: Option<Box<Payload>>, #[serde(default)] a: u8 }, B } }
        compatible;
}

// What is no change.

changes! {
    what_is_the_same_is_no_change:
        { pub(super) struct Payload { a: u8, b: Option<String> } } => { pub(super) struct Payload { a: u8, b: Option<String> } } silent;
    names_of_types_and_order_and_comments_are_no_change:
        {
            pub(super) struct Payload { address: Address, state: State }
            pub(super) struct Address { zip: String, city: String }
            pub(super) enum State { New, Paid }
        } => {
            /// Documented now.
            pub(super) struct Payload { state: OrderState, address: PostalAddress }
            /// A renamed type.
            #[schemars(title = "Anything")]
            pub(super) struct PostalAddress {
                /// The city.
                city: String,
                zip: String,
            }
            pub(super) enum OrderState {
                /// The last one.
                Paid,
                /// The first one.
                New,
            }
        } silent;
    variants_in_another_order_are_no_change:
        { #[serde(tag = "is")] pub(super) enum Payload { A { a: B }, C { d: u8 }, E } pub(super) struct B { b: u8 } }
        => { #[serde(tag = "is")] pub(super) enum Payload { E, C { d: u8 }, A { a: X } } pub(super) struct X { b: u8 } } silent;
    a_type_around_a_value_is_no_change:
        { pub(super) struct Payload { a: u64, b: Vec<String> } }
        => { pub(super) struct Payload { a: Id, b: Names } pub(super) struct Id(u64); pub(super) struct Names(Vec<String>); } silent;
    fields_in_a_struct_of_their_own_are_no_change_when_it_is_flattened:
        { pub(super) struct Payload { a: u8, b: u8, c: Option<u8> } }
        => { pub(super) struct Payload { a: u8, #[serde(flatten)] rest: Rest } pub(super) struct Rest { b: u8, c: Option<u8> } } silent;
    a_field_with_another_name_in_rust_is_no_change:
        { pub(super) struct Payload { order_id: u8 } } => { pub(super) struct Payload { #[serde(rename = "order_id")] id: u8 } } silent;
    a_recursive_type_of_another_name_is_no_change:
        { pub(super) struct Payload { tree: Tree } pub(super) struct Tree { children: Vec<Tree>, leaf: Leaf } pub(super) struct Leaf { a: u8 } }
        => { pub(super) struct Payload { tree: Node } pub(super) struct Node { leaf: End, children: Vec<Node> } pub(super) struct End { a: u8 } } silent;
    a_default_that_is_another_at_each_start_is_no_change:
        { pub(super) struct Payload { #[serde(default = "chrono::Utc::now")] a: chrono::DateTime<chrono::Utc> } }
        => { pub(super) struct Payload { #[serde(default = "chrono::Utc::now")] a: chrono::DateTime<chrono::Utc> } } silent;
    a_field_that_is_named_like_a_word_of_json_schema_is_a_field:
        { pub(super) struct Payload { title: String, default: u8, required: Vec<String>, description: u8, properties: u8 } }
        => { pub(super) struct Payload { title: u8, default: u8, required: Vec<String>, description: u8 } }
        breaks ["> field-removed properties", "< type-changed title", "> type-changed title"];
}

// Sensitive values.

changes! {
    a_seal_cannot_be_put_on:
        { pub(super) struct Payload { a: String } } => { pub(super) struct Payload { a: outbox_core::sensitive::Sealed<String> } }
        breaks ["< type-changed a", "> type-changed a"];
    a_seal_cannot_be_taken_off:
        { pub(super) struct Payload { a: outbox_core::sensitive::Sealed<String> } }
        => { pub(super) struct Payload { a: Plain } pub(super) struct Plain { alg: String, key: String, sealed: String } }
        breaks ["< seal-changed a", "> seal-changed a", "> format-changed a.sealed"];
    what_is_sealed_is_compared_as_well:
        { pub(super) struct Payload { a: outbox_core::sensitive::Sealed<u8> } }
        => { pub(super) struct Payload { a: outbox_core::sensitive::Sealed<u16> } }
        breaks ["> range-widened a"];
    a_value_that_is_redacted_is_missed_by_the_build_before:
        { pub(super) struct Payload { a: String } } => { pub(super) struct Payload { a: outbox_core::sensitive::Redacted<String> } }
        breaks ["> null-added a"];
    an_optional_value_may_be_redacted:
        { pub(super) struct Payload { a: Option<String> } } => { pub(super) struct Payload { a: outbox_core::sensitive::Redacted<String> } }
        compatible;
}
