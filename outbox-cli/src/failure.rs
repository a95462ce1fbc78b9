//! How a command ends.

use outbox_core::{StoreError, store::OperateError};
use std::{fmt, process::ExitCode};

/// The exit codes. They are part of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// 0: done, and nothing is wrong.
    Fine,
    /// 1: a doctor has found something, or what was asked for was refused, at least in part.
    Refused,
    /// 2: the command line is not understood.
    Usage,
    /// 3: the database cannot be reached, its tables are missing, or it has returned an error.
    Database,
    /// 4: the answer could not be written (a full disk; a pipe that nobody reads any more is no error).
    Output,
}

impl Exit {
    /// The number.
    pub const fn code(self) -> u8 {
        match self {
            Self::Fine => 0,
            Self::Refused => 1,
            Self::Usage => 2,
            Self::Database => 3,
            Self::Output => 4,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}

/// Why a command ended before its time.
#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    message: String,
}

impl Failure {
    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self { exit: Exit::Refused, message: message.into() }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, message: message.into() }
    }

    pub(crate) fn database(message: impl Into<String>) -> Self {
        Self { exit: Exit::Database, message: message.into() }
    }

    pub(crate) fn output(error: &std::io::Error) -> Self {
        Self { exit: Exit::Output, message: format!("the answer cannot be written: {error}") }
    }

    pub(crate) fn exit(&self) -> Exit {
        self.exit
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::database(error.to_string())
    }
}

impl From<OperateError> for Failure {
    fn from(error: OperateError) -> Self {
        match error {
            OperateError::Store(error) => error.into(),
            error @ (OperateError::Text { .. } | OperateError::Version { .. }) => {
                Self::usage(error.to_string())
            }
            error => Self::refused(error.to_string()),
        }
    }
}
