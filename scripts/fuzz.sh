#!/usr/bin/env bash
# Runs every fuzz target for FUZZ_SECONDS (60), starting from its seeds. Installs cargo-fuzz when
# it is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${FUZZ_SECONDS:-60}

if ! cargo fuzz --version >/dev/null 2>&1; then
    printf 'fuzz: installing cargo-fuzz\n' >&2
    cargo install --locked cargo-fuzz
fi

# Sanitizers are unstable flags; this lets the stable compiler take them.
export RUSTC_BOOTSTRAP=1
targets=$(cargo fuzz list)
for target in $targets; do
    printf 'fuzz: %s for %s s\n' "$target" "$seconds" >&2
    mkdir -p "fuzz/corpus/$target"
    corpora=("fuzz/corpus/$target")
    if [ -d "fuzz/seeds/$target" ]; then
        corpora+=("fuzz/seeds/$target")
    fi
    cargo fuzz run "$target" "${corpora[@]}" -- -max_total_time="$seconds"
done
