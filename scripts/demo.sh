#!/usr/bin/env bash
# perflab with something in it: builds, measures a few benchmarks for real, starts the server on
# loopback, sends the results as a CI job would, shows them, and serves until Ctrl-C.
# DEMO_ONCE=1 ends after showing, and keeps no data, so that it can run beside another demo.
set -euo pipefail
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-$PWD/target}
category=perfpipe_demo_benchmarks
work=$(mktemp -d)
export PERFLAB_HOME=$target/demo-home
if [ "${DEMO_ONCE:-0}" = 1 ]; then
    PERFLAB_HOME=$work/home
fi
unset PERFLAB_SERVER PERFLAB_TOKEN
server=

say() { printf '\ndemo: %s\n' "$*" >&2; }

stop() {
    if [ -n "$server" ]; then
        kill -TERM "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    fi
    rm -rf "$work"
}
trap stop EXIT
trap 'exit 0' INT TERM

# perflab's own port; a free one when something else has it.
listen_address() {
    if python3 - 7117 <<'PYTHON'; then
import socket, sys
with socket.socket() as probe:
    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        probe.bind(("127.0.0.1", int(sys.argv[1])))
    except OSError:
        sys.exit(1)
PYTHON
        echo 127.0.0.1:7117
    else
        echo 127.0.0.1:0
    fi
}

# Starts the server and waits until it says its address.
start_server() {
    "$perflab" serve --listen "$(listen_address)" >"$work/address" &
    server=$!
    for _ in $(seq 100); do
        if [ -s "$work/address" ]; then
            address=$(grep -o 'http://[^ ]*' "$work/address" | head -n 1)
            return 0
        fi
        kill -0 "$server" 2>/dev/null || break
        sleep 0.1
    done
    say "the server did not start"
    exit 3
}

say "building"
# Every program of the workspace, though one is run: the dependencies then have the features that
# `make test` gives them, and neither command compiles again what the other did.
cargo build --locked --workspace --bins
perflab=$target/debug/perflab

say "measuring (demo/test_speed.py, with pytest-benchmark)"
.venv/bin/python -B -m pytest -q -p no:cacheprovider demo/test_speed.py \
    --benchmark-max-time=0.2 --benchmark-min-rounds=5 --benchmark-columns=min,median,stddev,rounds \
    --benchmark-json "$work/results.json" >&2

say "starting the server (data in $PERFLAB_HOME)"
start_server

say "sending the results to $address/scribe_logs"
.venv/bin/python -B demo/upload.py --url "$address/scribe_logs" --category "$category" "$work/results.json"

say "perflab categories"
"$perflab" categories
say "perflab tail $category --limit 3"
"$perflab" tail "$category" --limit 3

say "perflab query demo_benchmarks --group-by benchmark_group --agg count,avg:median"
"$perflab" query demo_benchmarks --group-by benchmark_group --agg count,avg:median

say "perflab serves on $address"
printf '%s\n' "$address"
if [ "${DEMO_ONCE:-0}" = 1 ]; then
    exit 0
fi
say "Ctrl-C ends it"
wait "$server"
