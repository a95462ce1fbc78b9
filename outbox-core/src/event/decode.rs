//! Stored payload → event, with errors that never quote a value.

use serde::de::DeserializeOwned;
use serde_json::error::Category;

/// Why a stored payload cannot be turned into an event. Terminal: reading it again gives the same answer.
///
/// serde's own message is not kept, because it quotes the value that it stumbled over, and this text ends in a column
/// and in logs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The text is not JSON, or is cut off.
    #[error("the payload is not valid JSON (line {line}, column {column})")]
    Syntax {
        /// Line in the stored text, from 1.
        line: usize,
        /// Column in that line.
        column: usize,
    },
    /// The JSON does not fit the type: a missing field, another type, an unknown variant.
    #[error("the payload does not fit the event's type (line {line}, column {column})")]
    Shape {
        /// Line in the stored text, from 1.
        line: usize,
        /// Column in that line.
        column: usize,
    },
    /// A version that this build cannot read.
    #[error("payload version {version} cannot be read as {event}")]
    UnsupportedVersion {
        /// Logical name of the type that was asked.
        event: &'static str,
        /// The stored version.
        version: u16,
    },
    /// The conversion from an earlier version refused the payload.
    #[error("the payload of version {version} was not brought up to {event}: {reason}")]
    Refused {
        /// Logical name of the type that refused it.
        event: &'static str,
        /// The version that it had.
        version: u16,
        /// The conversion's own words. Whoever writes them keeps the payload out of them.
        reason: String,
    },
}

impl DecodeError {
    /// The error for a version that the type does not read.
    pub fn unsupported_version(event: &'static str, version: u16) -> Self {
        Self::UnsupportedVersion { event, version }
    }

    pub(crate) fn refused(event: &'static str, version: u16, reason: &str) -> Self {
        Self::Refused { event, version, reason: reason.to_owned() }
    }
}

/// What may be said of an error of `serde_json`'s: what kind and where. Its own words quote the value that it stumbled
/// over.
pub(crate) fn place(error: &serde_json::Error) -> String {
    let what = match error.classify() {
        Category::Data => "the JSON does not fit the type",
        Category::Syntax => "the JSON is not valid",
        Category::Eof => "the JSON is cut off",
        Category::Io => "the JSON could not be read or written",
    };
    format!("{what} (line {}, column {})", error.line(), error.column())
}

/// Reads JSON, keeping of serde's error only where it happened.
///
/// # Errors
///
/// [`DecodeError::Syntax`] or [`DecodeError::Shape`].
pub fn decode_json<T: DeserializeOwned>(payload: &str) -> Result<T, DecodeError> {
    serde_json::from_str(payload).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        match error.classify() {
            Category::Data => DecodeError::Shape { line, column },
            Category::Syntax | Category::Eof | Category::Io => DecodeError::Syntax { line, column },
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_never_quotes_the_payload() {
        let shape = decode_json::<u32>("\"alice@example.com\"").unwrap_err();
        assert_eq!(shape, DecodeError::Shape { line: 1, column: 19 });
        assert!(!format!("{shape} {shape:?}").contains("alice"));
        assert!(matches!(decode_json::<Vec<u32>>("[1"), Err(DecodeError::Syntax { .. })));
    }
}
