//! What does not compile, and what the compiler then says: `ui/<macro>/<rule-broken>.rs` beside its `.stderr`.
//! What must compile is in `ui/pass`.
//!
//! The messages belong to the compiler of `rust-toolchain.toml`. `TRYBUILD=overwrite` renews them; read them like
//! code: each shows the user's own word, says what to do, and says it once.

#[test]
fn ui() {
    let cases = trybuild::TestCases::new();
    cases.pass("ui/pass/*.rs");
    for mistakes in ["event", "handler", "aggregate", "save"] {
        cases.compile_fail(format!("ui/{mistakes}/*.rs"));
    }
}
