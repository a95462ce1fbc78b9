//! Finds the scripts of obix's tables, which the crate carries and does not run.

use std::{env, fs, path::Path, process::Command};

fn main() {
    let cargo = env::var("CARGO").expect("cargo runs this");
    let metadata = Command::new(cargo)
        .args(["metadata", "--format-version=1", "--locked", "--filter-platform"])
        .arg(env::var("TARGET").expect("a target"))
        .output()
        .expect("metadata");
    let text = String::from_utf8(metadata.stdout).expect("JSON");
    let end = text.find("/obix-0.16.0/Cargo.toml").expect("obix is a dependency");
    let start = text[..end].rfind('"').expect("a path") + 1;
    let from = Path::new(&text[start..end]).join("obix-0.16.0/migrations");
    let to = env::var("OUT_DIR").expect("cargo says where");
    let name = "20251204130225_obix_setup.sql";
    fs::copy(from.join(name), Path::new(&to).join("obix.sql")).expect("the script of obix");
    let name = "20250904065521_job_setup.sql";
    fs::copy(from.join(name), Path::new(&to).join("job.sql")).expect("the script of job");
}
