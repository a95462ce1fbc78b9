//! The grammar of the names that are stored, and how a wrong one is put right.

/// What a stored name must look like: dotted lowercase kebab-case.
///
/// Names are compared byte by byte in three databases and appear in file names, metrics and URLs; one spelling that
/// is safe everywhere spares every consumer a question.
pub(crate) struct Grammar {
    /// What the name is called in messages.
    pub(crate) what: &'static str,
    /// A right one.
    pub(crate) example: &'static str,
    max_bytes: usize,
    min_segments: usize,
    /// What to do instead of ending the name in `v2`; `None` where that is no mistake.
    version: Option<fn(&str) -> String>,
}

pub(crate) const EVENT_NAME: Grammar = Grammar {
    what: "event name",
    example: "orders.order-placed",
    max_bytes: 200,
    min_segments: 2,
    version: Some(|number| format!("write `version = {number}` instead")),
};

pub(crate) const HANDLER_ID: Grammar = Grammar {
    what: "handler id",
    example: "mail.confirm-order",
    max_bytes: 200,
    min_segments: 2,
    version: None,
};

pub(crate) const AGGREGATE_NAME: Grammar =
    Grammar { what: "aggregate name", example: "order", max_bytes: 100, min_segments: 1, version: None };

impl Grammar {
    /// Says what is wrong with a name, and which one would be right.
    pub(crate) fn check(&self, name: &str) -> Result<(), String> {
        let Self { what, max_bytes, min_segments, .. } = *self;
        let segments: Vec<&str> = name.split('.').collect();
        let problem = if name.is_empty() {
            format!("{what} is empty")
        } else if name.len() > max_bytes {
            return Err(format!("{what} is {} bytes long; the limit is {max_bytes}", name.len()));
        } else if let Some(wrong) = name.chars().find(|c| !matches!(c, 'a'..='z' | '0'..='9' | '-' | '.')) {
            format!("{what} {name:?} may not contain {wrong:?}")
        } else if segments.contains(&"") {
            format!("{what} {name:?} has an empty segment")
        } else if let Some(segment) =
            segments.iter().find(|segment| !segment.starts_with(|c: char| c.is_ascii_lowercase()))
        {
            format!("{what} {name:?}: segment {segment:?} must start with a letter a-z")
        } else if let Some(segment) =
            segments.iter().find(|segment| segment.ends_with('-') || segment.contains("--"))
        {
            format!("{what} {name:?}: segment {segment:?} has a misplaced hyphen")
        } else if let Some((advice, number)) = self.version.zip(version_number(segments[segments.len() - 1]))
        {
            return Err(format!("{what} {name:?} must not end in a version segment; {}", advice(number)));
        } else if segments.len() < min_segments {
            format!("{what} {name:?} needs at least two dot-separated segments")
        } else {
            return Ok(());
        };
        Err(format!("{problem}; use lowercase kebab-case segments, e.g. {:?}", self.nearest(name)))
    }

    /// A right name that says the same, or the example when nothing is left of it.
    pub(crate) fn nearest(&self, name: &str) -> String {
        let name = name.replace("::", ".");
        let mut segments: Vec<String> =
            name.split('.').map(kebab).filter(|segment| !segment.is_empty()).collect();
        if self.version.is_some() {
            while segments.last().is_some_and(|segment| version_number(segment).is_some()) {
                segments.pop();
            }
        }
        if !segments.is_empty() && segments.len() < self.min_segments {
            let context = self.example.split('.').next().unwrap_or_default();
            segments.insert(0, context.to_owned());
        }
        let name = segments.join(".");
        if segments.is_empty() || name.len() > self.max_bytes { self.example.to_owned() } else { name }
    }
}

/// `OrderPlaced`, `order_placed` and `order placed` as `order-placed`; what cannot be kept is dropped.
pub(crate) fn kebab(name: &str) -> String {
    let mut kebab = String::new();
    let chars: Vec<char> = name.chars().collect();
    for (i, c) in chars.iter().enumerate() {
        let next_is_lower = chars.get(i + 1).is_some_and(char::is_ascii_lowercase);
        let after = i.checked_sub(1).map(|before| chars[before]);
        let word_starts = c.is_ascii_uppercase()
            && after.is_some_and(|before| !before.is_ascii_uppercase() || next_is_lower);
        if (word_starts || !c.is_ascii_alphanumeric()) && !kebab.is_empty() && !kebab.ends_with('-') {
            kebab.push('-');
        }
        if c.is_ascii_alphabetic() || (c.is_ascii_digit() && !kebab.is_empty()) {
            kebab.push(c.to_ascii_lowercase());
        }
    }
    kebab.trim_end_matches('-').to_owned()
}

/// The `2` of a segment `v2`.
fn version_number(segment: &str) -> Option<&str> {
    let number = segment.strip_prefix('v')?;
    (!number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::{AGGREGATE_NAME, EVENT_NAME, HANDLER_ID, kebab};

    #[test]
    fn right_names_pass() {
        for name in [
            "orders.order-placed",
            "a.b",
            "x1.y2-3.z",
            "billing.eu.invoice-sent",
            "v2.order-placed",
            "a.v",
            "a.v2-x",
        ] {
            assert_eq!(EVENT_NAME.check(name), Ok(()), "{name}");
        }
        assert_eq!(AGGREGATE_NAME.check("order"), Ok(()));
        assert_eq!(AGGREGATE_NAME.check("shop.order.v2"), Ok(()));
    }

    #[test]
    fn a_wrong_name_is_put_right() {
        for (name, problem, right) in [
            ("", "is empty", "orders.order-placed"),
            ("Orders.OrderPlaced", "may not contain 'O'", "orders.order-placed"),
            ("shop::HTTPOrder_placed", "may not contain ':'", "shop.http-order-placed"),
            ("order-placed", "needs at least two", "orders.order-placed"),
            ("orders..placed", "has an empty segment", "orders.placed"),
            ("orders.2-placed", "must start with a letter", "orders.placed"),
            ("orders.-placed", "must start with a letter", "orders.placed"),
            ("orders.placed-", "has a misplaced hyphen", "orders.placed"),
            ("orders.order--placed", "has a misplaced hyphen", "orders.order-placed"),
            ("заказы", "may not contain 'з'", "orders.order-placed"),
            ("orders.\u{0}", "may not contain '\\0'", "orders.orders"),
        ] {
            let error = EVENT_NAME.check(name).expect_err(name);
            assert!(error.contains(problem) && error.contains(&format!("{right:?}")), "{error}");
            assert_eq!(EVENT_NAME.check(&EVENT_NAME.nearest(name)), Ok(()), "{name}");
        }
    }

    #[test]
    fn a_version_belongs_elsewhere() {
        let error = EVENT_NAME.check("orders.order-placed.v2").unwrap_err();
        assert!(error.ends_with("must not end in a version segment; write `version = 2` instead"), "{error}");
        // A handler has no version of its own, and `index.v2` is how one replaces another.
        assert_eq!(HANDLER_ID.check("search.index.v2"), Ok(()));
    }

    #[test]
    fn length_is_counted_in_bytes() {
        let longest = format!("a.{}", "b".repeat(198));
        assert_eq!(EVENT_NAME.check(&longest), Ok(()));
        let error = EVENT_NAME.check(&format!("{longest}b")).unwrap_err();
        assert_eq!(error, "event name is 201 bytes long; the limit is 200");
        assert!(AGGREGATE_NAME.check(&"a".repeat(101)).is_err());
    }

    #[test]
    fn words_are_found_in_any_case() {
        for (name, expected) in [
            ("OrderPlaced", "order-placed"),
            ("HTTPServer", "http-server"),
            ("order_placed", "order-placed"),
            ("V2Order", "v2-order"),
            ("__", ""),
        ] {
            assert_eq!(kebab(name), expected);
        }
    }
}
