#!/usr/bin/env bash
# Runs all tests on all databases; see scripts/databases.sh for where those come from.
# Arguments go to cargo: `scripts/test.sh -p outbox-core`, `scripts/test.sh -- claim`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# A shell that was open before rustup was installed does not have cargo on its PATH.
command -v cargo >/dev/null || export PATH="${HOME:-}/.cargo/bin:$PATH"

exec scripts/databases.sh run -- cargo test --workspace --locked "$@"
