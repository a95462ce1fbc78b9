//! Lists and tuples.

use super::{Branch, Comparison, Kind};
use serde_json::Value;

impl Comparison<'_> {
    pub(super) fn arrays(&mut self, written: &Branch, readable: &Branch, path: &str) {
        if written.get("const").is_some() {
            return self.report(Kind::Unproven, path, "a constant list is written");
        }
        let any = Value::Bool(true);
        let items = written.get("items").unwrap_or(&any);
        let reader = readable.get("items").unwrap_or(&any);
        match (tuple(written), tuple(readable)) {
            (Some(fields), Some(readers)) => {
                for (i, (field, reader)) in fields.iter().zip(readers).enumerate() {
                    self.schemas(field, reader, &format!("{path}[{i}]"));
                }
            }
            (Some(fields), None) => {
                for (i, field) in fields.iter().enumerate() {
                    self.schemas(field, reader, &format!("{path}[{i}]"));
                }
            }
            (None, Some(readers)) => {
                for (i, reader) in readers.iter().enumerate() {
                    self.schemas(items, reader, &format!("{path}[{i}]"));
                }
            }
            (None, None) => self.schemas(items, reader, &format!("{path}[]")),
        }
        self.lengths(written, readable, path);
    }

    fn lengths(&mut self, written: &Branch, readable: &Branch, path: &str) {
        // A tuple is read whole, and nothing behind it.
        let exact = tuple(readable).map(|fields| fields.len() as u64);
        let fewest = readable.size("minItems").or(exact);
        let most = readable.size("maxItems").or(exact);
        // What is written of a tuple without bounds is the tuple.
        let own = tuple(written).map(|fields| fields.len() as u64);
        let least_written = written.size("minItems").or(own).unwrap_or(0);
        let most_written = written.size("maxItems").or(own).unwrap_or(u64::MAX);
        if fewest.is_some_and(|fewest| least_written < fewest) || most.is_some_and(|most| most_written > most)
        {
            let says = |least: u64, most: u64| match (least, most) {
                (least, most) if least == most => format!("{least} items"),
                (least, u64::MAX) => format!("{least} items or more"),
                (least, most) => format!("{least} to {most} items"),
            };
            let text = format!(
                "{} are written, and the reader takes {}",
                says(least_written, most_written),
                says(fewest.unwrap_or(0), most.unwrap_or(u64::MAX))
            );
            self.report(Kind::Range, path, text);
        }
    }
}

fn tuple(branch: &Branch) -> Option<&[Value]> {
    branch.get("prefixItems")?.as_array().map(Vec::as_slice)
}
