//! Texts and numbers.

use super::{Branch, Comparison, Kind};
use serde_json::Value;

/// The largest number up to which each whole number is a float of its own.
const EXACT_IN_F32: f64 = 16_777_216.0;
const EXACT_IN_F64: f64 = 9_007_199_254_740_992.0;

impl Comparison<'_> {
    pub(super) fn strings(&mut self, written: &Branch, readable: &Branch, path: &str) {
        let constant = written.get("const").and_then(Value::as_str);
        if constant.is_some() && readable.get("const").is_some() {
            return;
        }
        for keyword in ["format", "pattern", "contentEncoding", "contentMediaType"] {
            let Some(wanted) = readable.get(keyword) else { continue };
            if written.get(keyword) != Some(wanted) {
                let is = written.get(keyword).map_or_else(|| written.describe(), Value::to_string);
                self.report(Kind::Format, path, format!("{is} is written, and the reader takes {wanted}"));
            }
        }
        let exact = constant.map(|text| text.chars().count() as u64);
        let least = exact.or(written.size("minLength")).unwrap_or(0);
        let most = exact.or(written.size("maxLength")).unwrap_or(u64::MAX);
        let too_short = readable.size("minLength").is_some_and(|wanted| least < wanted);
        let too_long = readable.size("maxLength").is_some_and(|wanted| most > wanted);
        if too_short || too_long {
            self.report(Kind::Range, path, "texts of other lengths are written than the reader takes");
        }
    }

    pub(super) fn numbers(&mut self, written: &Branch, readable: &Branch, path: &str) {
        if readable.get("const").is_some() {
            return;
        }
        let ((least, most), (lowest, highest)) = (range(written), range(readable));
        let exact = match (written.kind(), readable.kind(), readable.get("format").and_then(Value::as_str)) {
            ("integer", "number", Some("float")) => EXACT_IN_F32,
            ("integer", "number", _) => EXACT_IN_F64,
            _ => f64::INFINITY,
        };
        if least < lowest || most > highest || least < -exact || most > exact {
            let text = format!("{} is written, and the reader takes {}", shown(written), shown(readable));
            self.report(Kind::Range, path, text);
        }
        if let Some(step) = readable.get("multipleOf").filter(|step| written.get("multipleOf") != Some(step))
        {
            self.report(Kind::Range, path, format!("the reader takes multiples of {step}"));
        }
    }
}

fn shown(branch: &Branch) -> String {
    let (least, most) = (branch.get("minimum"), branch.get("maximum"));
    match (branch.get("const"), branch.get("format").and_then(Value::as_str), least, most) {
        (Some(value), ..) => value.to_string(),
        (None, Some(format), ..) => format.to_owned(),
        (None, None, Some(least), Some(most)) => format!("{least} to {most}"),
        _ => branch.describe(),
    }
}

/// The lowest and the highest number.
fn range(branch: &Branch) -> (f64, f64) {
    if let Some(value) = branch.get("const").and_then(Value::as_f64) {
        return (value, value);
    }
    let (mut lowest, mut highest) = of_format(branch);
    let limit = |keyword: &str| branch.get(keyword).and_then(Value::as_f64);
    lowest = limit("minimum").map_or(lowest, |limit| limit.max(lowest));
    highest = limit("maximum").map_or(highest, |limit| limit.min(highest));
    (lowest, highest)
}

/// schemars gives the wide types a format and no limits.
fn of_format(branch: &Branch) -> (f64, f64) {
    let signed = |bits: i32| (-(2_f64.powi(bits - 1)), 2_f64.powi(bits - 1) - 1.0);
    let unsigned = |bits: i32| (0.0, 2_f64.powi(bits) - 1.0);
    match branch.get("format").and_then(Value::as_str) {
        Some("int8") => signed(8),
        Some("int16") => signed(16),
        Some("int32") => signed(32),
        Some("int64" | "int") => signed(64),
        Some("int128") => signed(128),
        Some("uint8") => unsigned(8),
        Some("uint16") => unsigned(16),
        Some("uint32") => unsigned(32),
        Some("uint64" | "uint") => unsigned(64),
        Some("uint128") => unsigned(128),
        Some("float") => (f64::from(f32::MIN), f64::from(f32::MAX)),
        // What serde_json reads of a fraction is never more.
        Some("double") => (f64::MIN, f64::MAX),
        _ if branch.kind() == "number" => (f64::MIN, f64::MAX),
        _ => (f64::NEG_INFINITY, f64::INFINITY),
    }
}
