//! Primary key → `aggregate_id`.

use super::Aggregate;
use crate::error::SaveError;
use sea_orm::{ModelTrait, Value};

/// The key as text: one part as it is, several with `/` between them and `/` and `%` within them escaped, so that
/// two keys never meet in one text.
pub(super) fn key_text<A: Aggregate>(saved: &A::Model) -> Result<String, SaveError> {
    let parts: Vec<_> = saved.get_primary_key_value().into_iter().map(|value| part_text(&value)).collect();
    let parts: Result<Vec<_>, _> = parts.into_iter().collect();
    let parts = parts.map_err(|reason| SaveError::Key { aggregate_type: A::AGGREGATE_TYPE, reason })?;
    Ok(join(parts))
}

fn join(mut parts: Vec<String>) -> String {
    if parts.len() > 1 {
        for part in &mut parts {
            *part = part.replace('%', "%25").replace('/', "%2F");
        }
    }
    parts.join("/")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        text.push(char::from_digit(u32::from(byte >> 4), 16).unwrap_or('0'));
        text.push(char::from_digit(u32::from(byte & 15), 16).unwrap_or('0'));
        text
    })
}

fn part_text(value: &Value) -> Result<String, String> {
    let text = match value {
        Value::String(Some(text)) => text.clone(),
        Value::Uuid(Some(id)) => id.to_string(),
        Value::TinyInt(Some(n)) => n.to_string(),
        Value::SmallInt(Some(n)) => n.to_string(),
        Value::Int(Some(n)) => n.to_string(),
        Value::BigInt(Some(n)) => n.to_string(),
        Value::TinyUnsigned(Some(n)) => n.to_string(),
        Value::SmallUnsigned(Some(n)) => n.to_string(),
        Value::Unsigned(Some(n)) => n.to_string(),
        Value::BigUnsigned(Some(n)) => n.to_string(),
        Value::Char(Some(c)) => c.to_string(),
        Value::Bool(Some(b)) => b.to_string(),
        Value::ChronoDate(Some(date)) => date.to_string(),
        Value::ChronoDateTime(Some(time)) => time.to_string(),
        Value::ChronoDateTimeUtc(Some(time)) => time.to_rfc3339(),
        Value::Bytes(Some(bytes)) => hex(bytes),
        other => {
            // The kind alone: the value is nobody's business here.
            let text = format!("{other:?}");
            return Err(text.split(['(', ' ']).next().unwrap_or_default().to_owned());
        }
    };
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_common_key_type_has_a_text() {
        let id = uuid::Uuid::from_u128(7);
        let texts = [Value::from(-5), 5_u64.into(), "a/b".into(), id.into(), vec![1_u8, 255].into()];
        let texts: Vec<_> = texts.iter().map(part_text).collect();
        assert_eq!(
            texts,
            ["-5", "5", "a/b", "00000000-0000-0000-0000-000000000007", "01ff"].map(|t| Ok(t.to_owned()))
        );
        assert_eq!(part_text(&1.5_f64.into()), Err("Double".to_owned()));
    }

    #[test]
    fn composite_keys_never_meet_in_one_text() {
        let join = |parts: [&str; 2]| join(parts.map(str::to_owned).to_vec());
        assert_eq!(join(["a", "b/c"]), "a/b%2Fc");
        assert_ne!(join(["a/b", "c"]), join(["a", "b/c"]));
        assert_ne!(join(["%2F", "c"]), join(["/", "c"]));
    }
}
