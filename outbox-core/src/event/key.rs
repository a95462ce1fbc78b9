//! Ordering keys and their lanes.
//!
//! The three kinds of key are kept apart by their form, so that a key of one kind never meets a lock of another:
//! `order/42` (aggregate), `customer_id=7` (field), `=anything` (given by the caller of `append_ordered`).

use std::fmt::Display;
use xxhash_rust::xxh3::xxh3_64;

/// The key of an aggregate.
pub fn aggregate_key(aggregate_type: &str, aggregate_id: &str) -> String {
    format!("{aggregate_type}/{aggregate_id}")
}

/// The key of an event declared with `ordering = key(field)`.
pub fn field_key(field: &str, value: &impl Display) -> String {
    format!("{field}={value}")
}

/// The key that a caller names.
pub fn named_key(key: &str) -> String {
    field_key("", &key)
}

/// The lane of a key: `XXH3_64(key) mod 256`, seed 0, over the UTF-8 bytes of the key.
///
/// The lane is stored with the row and claimed as a unit, so it must be the same in every build that ever ran. It is
/// never configurable and its values are checked in below.
pub fn lane(ordering_key: &str) -> u8 {
    let [lane, ..] = xxh3_64(ordering_key.as_bytes()).to_le_bytes();
    lane
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lane_of_a_key_never_changes() {
        // Published vectors of XXH3_64 pin the function itself, the rest pins what we do with it.
        assert_eq!(xxh3_64(b""), 0x2d06_8005_38d3_94c2);
        let lanes = ["", "order/1", "order/2", "order/42", "customer_id=7", "=tenant-a", "übung/ß"].map(lane);
        assert_eq!(lanes, [194, 91, 212, 103, 171, 71, 19]);
    }

    #[test]
    fn keys_of_different_kinds_never_meet() {
        let keys = [aggregate_key("order", "7"), field_key("order", &7), named_key("order/7")];
        assert_eq!(keys, ["order/7", "order=7", "=order/7"]);
    }
}
