//! The command line, as `outbox` of `outbox-cli` is: here, so that it is built together with the tests that run it.

use std::process::ExitCode;

fn main() -> ExitCode {
    outbox_cli::main()
}
