#!/usr/bin/env bash
# What events cost the compiler: `benches/compile.sh [ROUNDS] [EVENTS]`, 5 rounds of 200 events by default.
#
# Crates are generated and compiled in turn, round after round, so that a busy machine slows all of them alike. What
# is compared is CPU time (user and system) of one crate, dependencies not counted, and of that the median:
#
#   by-hand    the types with serde and schemars, each written to JSON, read from it and described, by hand
#   events     the same types, derived as events, each raised and read
#   handlers   the same, with a `#[handler]` function for each event on top
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

rounds=${1:-5} events=${2:-200}
root=$PWD work=$PWD/target/compile-bench
variants=(by-hand events handlers)
export CARGO_INCREMENTAL=0 CARGO_TARGET_DIR=$work/target CARGO_TERM_COLOR=never

# The fields of every type: what events are made of.
fields='
    pub id: i64,
    pub code: String,
    pub total_cents: i64,
    pub note: Option<String>,
    pub lines: Vec<Line>,
    pub count: u32,
    pub is_paid: bool,
    pub ratio: f64,'

line='
#[derive(Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct Line {
    pub article: String,
    pub quantity: u32,
}'

type_of() { # N DERIVES [ATTRIBUTE]
  printf '\n#[derive(Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema%s)]\n%spub struct Event%s {%s\n}\n' \
    "$2" "${3:-}" "$1" "$fields"
}

source_of() { # VARIANT
  printf '#![allow(clippy::all)]\n%s\n' "$line"
  local n
  for ((n = 0; n < events; n++)); do
    if [ "$1" = by-hand ]; then
      type_of "$n" ''
      cat <<RUST
pub fn write_$n(event: &Event$n) -> serde_json::Result<String> { serde_json::to_string(event) }
pub fn read_$n(payload: &str) -> serde_json::Result<Event$n> { serde_json::from_str(payload) }
pub fn describe_$n() -> schemars::Schema { schemars::schema_for!(Event$n) }
RUST
    else
      type_of "$n" ', outbox_core::OutboxEvent' "#[outbox(name = \"bench.event-n$n\", version = 1, ordering = none)]
"
      cat <<RUST
pub fn write_$n(event: &Event$n) -> Result<outbox_core::Envelope, outbox_core::EventError> { outbox_core::Envelope::new(event) }
RUST
    fi
    if [ "$1" = events ]; then
      cat <<RUST
pub fn read_$n(payload: &str) -> Result<Event$n, outbox_core::event::DecodeError> { outbox_core::OutboxEvent::decode(1, payload) }
RUST
    elif [ "$1" = handlers ]; then
      cat <<RUST
#[outbox_core::handler(id = "bench.handle-n$n")]
pub async fn handle_$n(event: Event$n, cx: &outbox_core::MessageContext) -> Result<(), outbox_core::HandlerError> {
    drop((event, cx.message_id()));
    Ok(())
}
RUST
    fi
  done
}

manifest() { # VARIANT
  cat <<TOML
[package]
name = "$1"
version = "0.0.0"
edition = "2024"
[dependencies]
outbox-core = { path = "$root/outbox-core" }
schemars = "1.2"
serde = { version = "1", features = ["derive"] }
serde_json = { version = "1", features = ["float_roundtrip"] }
TOML
}

generate() {
  local variant
  for variant in "${variants[@]}"; do
    mkdir -p "$work/$variant/src"
    manifest "$variant" >"$work/$variant/Cargo.toml"
    source_of "$variant" >"$work/$variant/src/lib.rs"
  done
  printf '[workspace]\nresolver = "3"\nmembers = ["by-hand", "events", "handlers"]\n' >"$work/Cargo.toml"
  sed -n '/^\[profile/,$p' Cargo.toml >>"$work/Cargo.toml"
  cp Cargo.lock "$work/Cargo.lock"
}

measure() { # check|build VARIANT: CPU seconds
  touch "$work/$2/src/lib.rs"
  local TIMEFORMAT='%U %S' times
  times=$({ time cargo "$1" --quiet --offline --manifest-path "$work/Cargo.toml" -p "$2" 2>"$work/log"; } 2>&1) || {
    cat "$work/log" >&2
    exit 1
  }
  awk '{ print $1 + $2 }' <<<"$times"
}

median() { sort -n | awk '{ all[NR] = $1 } END { print NR % 2 ? all[(NR + 1) / 2] : (all[NR / 2] + all[NR / 2 + 1]) / 2 }'; }

report() {
  local mode variant base mid
  printf '%s, %s, %s rounds, %s events of 8 fields\n' "$(date -u +%F)" "$(rustc --version)" "$rounds" "$events"
  printf '%s, %s CPUs\n\n' "$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1)" "$(nproc)"
  printf '| | variant | CPU seconds, median (all) | factor |\n| --- | --- | --- | --- |\n'
  for mode in check build; do
    for variant in "${variants[@]}"; do
      mid=$(median <"$work/$mode-$variant")
      [ "$variant" = by-hand ] && base=$mid
      printf '| %s | %s | %.2f (%s) | %s |\n' "$mode" "$variant" "$mid" "$(sort -n "$work/$mode-$variant" | paste -sd ' ')" \
        "$(awk -v a="$mid" -v b="$base" 'BEGIN { printf "%.2f", a / b }')"
    done
  done
}

generate
for mode in check build; do
  for variant in "${variants[@]}"; do
    : >"$work/$mode-$variant"
    # The dependencies, and whatever else a first run needs.
    cargo "$mode" --quiet --manifest-path "$work/Cargo.toml" -p "$variant"
  done
done
for ((round = 1; round <= rounds; round++)); do
  for mode in check build; do
    for variant in "${variants[@]}"; do
      measure "$mode" "$variant" >>"$work/$mode-$variant"
    done
  done
done
report
