//! Where a command reads and writes.

use crate::{failure::Failure, redact::redact};
use std::{
    fmt,
    io::{self, BufRead, ErrorKind, IsTerminal, Write},
};

/// The streams of a command, and whether somebody sits before them.
pub struct Console {
    input: Box<dyn BufRead + Send>,
    output: Box<dyn Write + Send>,
    errors: Box<dyn Write + Send>,
    is_terminal: bool,
    /// Why the answer could not be written.
    failed: Option<io::Error>,
}

impl fmt::Debug for Console {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Console").field("is_terminal", &self.is_terminal).finish_non_exhaustive()
    }
}

impl Console {
    /// The streams of this process. It asks for confirmations when standard input and standard error are a terminal.
    pub fn of_process() -> Self {
        let is_terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
        let input = Box::new(io::BufReader::new(io::stdin()));
        Self::new(input, Box::new(io::stdout()), Box::new(io::stderr()), is_terminal)
    }

    /// Streams of one's own. `is_terminal`: somebody can answer.
    pub fn new(
        input: Box<dyn BufRead + Send>,
        output: Box<dyn Write + Send>,
        errors: Box<dyn Write + Send>,
        is_terminal: bool,
    ) -> Self {
        Self { input, output, errors, is_terminal, failed: None }
    }

    /// Writes a part of the answer. What goes wrong is told at the end, so that a verb is not broken off half-way.
    pub(crate) fn say(&mut self, text: &str) {
        if self.failed.is_none() {
            self.failed = writeln!(self.output, "{text}").err();
        }
    }

    /// Writes to standard error.
    pub(crate) fn complain(&mut self, text: &str) {
        // There is nowhere left to complain about this one.
        drop(writeln!(self.errors, "{}", redact(text)));
    }

    /// Whether all of the answer was written. That nobody wants to read the rest of it (`outbox list | head`) is no
    /// failure.
    pub(crate) fn finish(&mut self) -> Result<(), Failure> {
        if self.failed.is_none() {
            self.failed = self.output.flush().err();
        }
        match self.failed.take() {
            Some(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::output(&error)),
            _ => Ok(()),
        }
    }

    /// Says what will be changed, and goes on only when it was confirmed: by `--yes`, or by somebody at a terminal.
    pub(crate) fn confirm(&mut self, what: &str, yes: bool) -> Result<(), Failure> {
        if yes {
            return Ok(());
        }
        self.complain(what);
        if !self.is_terminal {
            return Err(Failure::refused(
                "nothing was changed: there is no terminal to confirm it at; look at what is listed above and say --yes",
            ));
        }
        drop(write!(self.errors, "Type yes to go on: ").and_then(|()| self.errors.flush()));
        let mut answer = String::new();
        let read = self.input.read_line(&mut answer);
        if read.is_ok() && answer.trim() == "yes" {
            return Ok(());
        }
        Err(Failure::refused("nothing was changed: it was not confirmed with yes"))
    }
}
