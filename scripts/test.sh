#!/usr/bin/env bash
# Everything that must hold: format, tests of the whole workspace (those of the documents and of
# the Python clients are among them), lints, rustdoc, and the demo. Goes on after a failure, so
# that one run shows all of them. The last line is `N passed, N failed`: tests, and a failure for
# every other step that did not succeed.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 3

passed=0
failed=0

say() { printf '\ntest: %s\n' "$*" >&2; }

# Runs a step that has no tests of its own to count.
step() {
    local name=$1
    shift
    say "$name"
    if ! "$@"; then
        say "FAILED: $name"
        failed=$((failed + 1))
    fi
}

# Sums up the result lines of cargo's test programs: prints passed and failed.
sum_results() {
    awk '/^test result: / {
        for (i = 2; i <= NF; i++) {
            if ($i == "passed;") passed += $(i - 1)
            if ($i == "failed;") failed += $(i - 1)
        }
    }
    END { print passed + 0, failed + 0 }' "$1"
}

run_tests() {
    local log status=0 tests_passed tests_failed
    log=$(mktemp)
    say "tests of the workspace"
    cargo test --workspace --locked --no-fail-fast 2>&1 | tee "$log" || status=$?
    read -r tests_passed tests_failed < <(sum_results "$log")
    rm -f "$log"
    # Code that does not compile has no result line, and neither has a test program that dies.
    if [ "$status" -ne 0 ] && [ "$tests_failed" -eq 0 ]; then
        say "FAILED: cargo test ended with $status"
        tests_failed=1
    fi
    passed=$((passed + tests_passed))
    failed=$((failed + tests_failed))
}

step "format" cargo fmt --all --check
run_tests
step "lints" cargo clippy --workspace --all-targets --locked -- -D warnings
step "documentation" env RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked --quiet
step "demo" env DEMO_ONCE=1 scripts/demo.sh

printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
