//! Other processes: relays that can be stopped and killed for real. Their program is `src/bin/relay_process.rs`.

use std::{
    path::{Path, PathBuf},
    process::{Output, Stdio},
};
use tokio::process::{Child, Command};

/// A program of `src/bin`, which `cargo test` builds beside the tests.
///
/// # Panics
///
/// When the tests do not run from where they were built.
pub fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().and_then(Path::parent).unwrap().join(name)
}

/// A process of this project's own, killed when it is dropped.
#[derive(Debug)]
pub struct Process(Child);

impl Process {
    /// Starts the program with these arguments.
    ///
    /// # Panics
    ///
    /// When the program was not built; `cargo test` builds it beside the tests.
    pub fn start(arguments: &[&str]) -> Self {
        let program = program("relay_process");
        let child = Command::new(&program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn();
        Self(child.unwrap_or_else(|error| panic!("{}: {error}", program.display())))
    }

    /// Sends a signal, such as `STOP`.
    ///
    /// # Panics
    ///
    /// When the process has ended.
    pub async fn signal(&self, signal: &str) {
        let pid = self.0.id().expect("the process runs");
        let sent = Command::new("kill").args([format!("-{signal}"), pid.to_string()]).status().await.unwrap();
        assert!(sent.success());
    }

    /// Waits for its end.
    ///
    /// # Panics
    ///
    /// When it does not end.
    pub async fn output(self) -> Output {
        tokio::time::timeout(crate::wait::PATIENCE, self.0.wait_with_output())
            .await
            .expect("the process ends")
            .unwrap()
    }
}
