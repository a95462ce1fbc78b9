//! The binary `outbox`. All of it is in the library, where tests can reach it.

use std::process::ExitCode;

fn main() -> ExitCode {
    outbox_cli::main()
}
