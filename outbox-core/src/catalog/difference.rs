//! One way in which a writer and a reader disagree.

use std::fmt;

/// Whom a difference breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Breaks {
    /// Rows that are stored already cannot be read by this build.
    StoredRows,
    /// Rows that this build writes cannot be read by the build before it, which runs beside it while it is deployed.
    PreviousBuild,
    /// Rows that this build writes cannot be read by this build.
    Itself,
}

impl fmt::Display for Breaks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::StoredRows => "this build cannot read rows that are stored already",
            Self::PreviousBuild => "the build before this one cannot read rows that this one writes",
            Self::Itself => "this build cannot read rows that it writes itself",
        })
    }
}

/// What kind of disagreement; its name depends on who writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The reader requires a field that is not written.
    Missing,
    /// The reader requires a field that is not always written.
    Optional,
    /// The reader refuses a field that is written.
    Refused,
    /// A variant is written that the reader does not know.
    Variant,
    /// Null is written where the reader takes none.
    Null,
    Type,
    /// Numbers, lengths.
    Range,
    Format,
    /// Keys of a map.
    Keys,
    Seal,
    /// Something that this check does not understand.
    Unproven,
}

impl Kind {
    fn rule(self, breaks: Breaks) -> &'static str {
        use Breaks::{Itself, PreviousBuild, StoredRows};
        match (self, breaks) {
            (Self::Missing, StoredRows) => "required-field-added",
            (Self::Missing, PreviousBuild) => "field-removed",
            (Self::Missing, Itself) => "field-not-written",
            (Self::Optional, StoredRows) => "field-now-required",
            (Self::Optional, PreviousBuild) => "field-now-optional",
            (Self::Optional, Itself) => "field-not-always-written",
            (Self::Refused, StoredRows) => "field-refused",
            (Self::Refused, PreviousBuild) => "field-added",
            (Self::Refused, Itself) => "field-not-read",
            (Self::Variant, StoredRows) => "variant-removed",
            (Self::Variant, PreviousBuild) => "variant-added",
            (Self::Variant, Itself) => "variant-not-read",
            (Self::Null, StoredRows) => "null-refused",
            (Self::Null, PreviousBuild) => "null-added",
            (Self::Null, Itself) => "null-not-read",
            (Self::Type, _) => "type-changed",
            (Self::Range, PreviousBuild) => "range-widened",
            (Self::Range, _) => "range-narrowed",
            (Self::Format, _) => "format-changed",
            (Self::Keys, _) => "keys-changed",
            (Self::Seal, _) => "seal-changed",
            (Self::Unproven, _) => "cannot-prove",
        }
    }
}

/// One way in which what is written and what can be read disagree.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Difference {
    /// Where in the payload: `address.street`, `items[].price`; empty for the payload itself.
    pub path: String,
    /// The rule's stable id: `field-removed`, `type-changed`.
    pub rule: &'static str,
    /// Whom it breaks.
    pub breaks: Breaks,
    /// What is written, and what the reader makes of it.
    pub text: String,
}

impl Difference {
    pub(super) fn new(kind: Kind, breaks: Breaks, path: &str, text: String) -> Self {
        Self { path: path.to_owned(), rule: kind.rule(breaks), breaks, text }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() { "the payload" } else { &self.path };
        write!(f, "[{}] {path}: {}; {}", self.rule, self.text, self.breaks)
    }
}
