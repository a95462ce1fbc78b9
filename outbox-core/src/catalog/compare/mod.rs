//! Can a reader read everything that a writer writes?
//!
//! The writer's schema is closed: serde writes the fields that it lists and no others. The reader's is open unless it
//! says otherwise: serde passes over what it does not know. So this is no comparison of two schemas of one kind, and
//! a question that general tools for JSON Schema answer wrongly.
//!
//! What is not understood is refused (`cannot-prove`), never passed over. `tests/it/catalog/differential.rs` holds it
//! to serde: whatever is called readable here, serde reads.

mod array;
mod branch;
mod object;
mod scalar;

use super::difference::{Breaks, Difference, Kind};
use branch::{Branch, branches};
use serde_json::Value;
use std::{collections::HashSet, rc::Rc};

/// Every way in which what `written` describes cannot be read as `readable` describes; both are canonical.
pub(super) fn differences(written: &Value, readable: &Value, breaks: Breaks) -> Vec<Difference> {
    let mut comparison = Comparison {
        written,
        readable,
        breaks,
        seen: HashSet::new(),
        met: Vec::new(),
        found: Vec::new(),
        steps: MAX_STEPS,
        depth: 0,
    };
    comparison.schemas(written, readable, "");
    let mut found = comparison.found;
    found.sort();
    found.dedup();
    found
}

/// Far more than real payloads need, and still less than a second.
const MAX_STEPS: usize = 20_000;
/// Levels of schemas within each other; recursion ends at a pair that was met before.
const MAX_DEPTH: usize = 100;

/// The texts of what is written and of what is read.
type Pair = (String, String);

pub(super) struct Comparison<'a> {
    /// The roots, which hold the definitions.
    written: &'a Value,
    readable: &'a Value,
    breaks: Breaks,
    /// Pairs that are being compared or were found readable. One that is met again is taken to hold: a recursive type
    /// holds if each of its levels does.
    seen: HashSet<Rc<Pair>>,
    /// The same in the order in which they were met, so that an attempt can be undone.
    met: Vec<Rc<Pair>>,
    found: Vec<Difference>,
    steps: usize,
    depth: usize,
}

impl Comparison<'_> {
    pub(super) fn report(&mut self, kind: Kind, path: &str, text: impl Into<String>) {
        self.found.push(Difference::new(kind, self.breaks, path, text.into()));
    }

    pub(super) fn schemas(&mut self, written: &Value, readable: &Value, path: &str) {
        let pair = Rc::new((written.to_string(), readable.to_string()));
        if self.seen.contains(&pair) {
            return;
        }
        if self.steps == 0 || self.depth == MAX_DEPTH {
            return self.report(Kind::Unproven, path, "the schema is too large or too deep to be compared");
        }
        self.steps -= 1;
        self.seen.insert(pair.clone());
        self.met.push(pair);
        self.depth += 1;
        match (branches(self.written, written), branches(self.readable, readable)) {
            (Some(written), Some(readable)) => self.alternatives(&written, &readable, path),
            _ => self.report(Kind::Unproven, path, "the schema has too many alternatives to be compared"),
        }
        self.depth -= 1;
    }

    /// Each alternative that is written must be one that is read.
    fn alternatives(&mut self, written: &[Branch], readable: &[Branch], path: &str) {
        for branch in written {
            let fitting: Vec<_> = readable.iter().filter(|reader| branch.may_be_read_as(reader)).collect();
            match fitting.as_slice() {
                [] => self.unknown(branch, several(written) && several(readable), readable, path),
                [only] => self.branch(branch, only, path),
                more => {
                    let mut tries = more.iter().map(|reader| self.attempt(branch, reader, path));
                    let mut best = tries.next().unwrap_or_default();
                    while !best.is_empty()
                        && let Some(found) = tries.next()
                    {
                        if found.len() < best.len() {
                            best = found;
                        }
                    }
                    self.found.append(&mut best);
                }
            }
        }
    }

    /// The differences of one pair. What was taken to hold on the way is forgotten unless it did.
    fn attempt(&mut self, written: &Branch, readable: &Branch, path: &str) -> Vec<Difference> {
        let before = std::mem::take(&mut self.found);
        let met = self.met.len();
        self.branch(written, readable, path);
        let found = std::mem::replace(&mut self.found, before);
        if !found.is_empty() {
            for pair in self.met.drain(met..) {
                self.seen.remove(&pair);
            }
        }
        found
    }

    fn unknown(&mut self, branch: &Branch, are_variants: bool, readable: &[Branch], path: &str) {
        let mut known: Vec<_> = readable.iter().map(Branch::describe).collect();
        known.dedup();
        let more = known.len().saturating_sub(8);
        known.truncate(8);
        let mut known = known.join(", ");
        if more > 0 {
            known.push_str(", …");
        }
        let kind = if branch.kind() == "null" {
            Kind::Null
        } else if branch.is_variant() || are_variants {
            Kind::Variant
        } else {
            Kind::Type
        };
        let text = format!("{} is written, and the reader takes {known}", branch.describe());
        self.report(kind, path, text);
    }

    fn branch(&mut self, written: &Branch, readable: &Branch, path: &str) {
        if readable.is_any() {
            return;
        }
        let differs = |keyword: &&str| {
            *keyword == branch::CONTRADICTORY || written.get(keyword) != readable.get(keyword)
        };
        if let Some(keyword) = readable.unknown_keywords().chain(written.unknown_keywords()).find(differs) {
            let text = format!("the schema says `{keyword}`, which this check does not understand");
            return self.report(Kind::Unproven, path, text);
        }
        match written.kind() {
            "object" => self.objects(written, readable, path),
            "array" => self.arrays(written, readable, path),
            "string" => self.strings(written, readable, path),
            "integer" | "number" => self.numbers(written, readable, path),
            _ => {}
        }
        self.seals(written, readable, path);
    }

    /// A sealed value is read as a sealed value, of a type that can read the value.
    fn seals(&mut self, written: &Branch, readable: &Branch, path: &str) {
        const SEALED: &str = "x-outbox-sealed";
        match (written.get(SEALED), readable.get(SEALED)) {
            (None, None) => {}
            (Some(written), Some(readable)) => self.schemas(written, readable, path),
            (written, _) => {
                let (is, wants) = if written.is_some() { ("sealed", "plain") } else { ("plain", "sealed") };
                self.report(Kind::Seal, path, format!("the value is written {is}, and read {wants}"));
            }
        }
    }
}

/// Null is what an `Option` adds, and no variant.
fn several(branches: &[Branch]) -> bool {
    branches.iter().filter(|branch| branch.kind() != "null").count() > 1
}

/// The path of a field.
pub(super) fn field(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
