//! How deep JSON is nested: `serde_json` writes any depth and reads 127 levels.

/// The number of objects and lists that stand in each other.
pub(crate) fn depth(json: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let (mut in_text, mut is_escaped) = (false, false);
    for byte in json.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_text => is_escaped = true,
            b'"' => in_text = !in_text,
            b'{' | b'[' if !in_text => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::depth;
    use crate::event::MAX_PAYLOAD_DEPTH;
    use serde_json::Value;

    #[test]
    fn only_what_is_no_text_counts() {
        for (json, levels) in [("1", 0), ("{}", 1), (r#"{"[[":"]]\\\"{{"}"#, 1), (r#"[[],[{"a":[]}]]"#, 4)] {
            assert_eq!(depth(json), levels, "{json}");
        }
    }

    #[test]
    fn the_limit_is_what_can_be_read_back() {
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert!(serde_json::from_str::<Value>(&nested(MAX_PAYLOAD_DEPTH)).is_ok());
        assert!(serde_json::from_str::<Value>(&nested(MAX_PAYLOAD_DEPTH + 1)).is_err());
        assert_eq!(depth(&nested(MAX_PAYLOAD_DEPTH)), MAX_PAYLOAD_DEPTH);
    }
}
