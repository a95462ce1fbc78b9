//! Which names a consumer can have.

use super::InboxError;

/// The longest name, in bytes: what the column takes on every database.
const MAX_BYTES: usize = 200;

/// Checks a name before anything is asked of the database.
pub(super) fn check(name: &str) -> Result<(), InboxError> {
    let problem = if name.is_empty() {
        "is empty"
    } else if name.len() > MAX_BYTES {
        "has more than 200 bytes"
    } else if name.contains(char::is_control) {
        "contains a control character"
    } else if name.trim() != name {
        // MySQL compares texts as if blanks at their end were not there.
        "begins or ends with white space"
    } else {
        return Ok(());
    };
    Err(InboxError::Consumer { name: name.chars().take(MAX_BYTES).collect(), problem })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_what_every_database_keeps_and_tells_apart() {
        for name in ["a", "Mail", "mail.confirm-order", "naïve consumer", &"x".repeat(200)] {
            assert!(check(name).is_ok(), "{name:?}");
        }
        for name in ["", " ", "a ", " a", "a\0", "a\nb", &"x".repeat(201), &"ß".repeat(101)] {
            assert!(check(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn a_refusal_quotes_a_name_that_is_too_long_in_part() {
        let error = check(&"x".repeat(100_000)).unwrap_err().to_string();
        assert!(error.contains("more than 200 bytes") && error.len() < 400, "{error}");
    }
}
