#!/usr/bin/env bash
# Makes this machine ready to build, test and demonstrate perflab: what Debian's packages must
# give, and a Python virtualenv of the project's own in .venv. Installs only what is missing and
# says so; where it may not install, it names what is missing and ends with 3.
# With --bench also what only the comparisons with other stores need.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'setup: %s\n' "$*" >&2; }

fail() {
    say "$@"
    exit 3
}

# Runs a command as root, if that is possible without asking anyone.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    else
        sudo -n "$@"
    fi
}

may_be_root() {
    [ "$(id -u)" -eq 0 ] || sudo -n true 2>/dev/null
}

# The Debian packages of what is missing, one per line.
missing_packages() {
    # The compiler is for C inside crates: SQLite, zstd, the allocator, the TLS primitives.
    command -v cc >/dev/null || echo build-essential
    command -v python3 >/dev/null || echo python3
    python3 -c 'import ensurepip, venv' 2>/dev/null || echo python3-venv
}

install_packages() {
    local packages
    mapfile -t packages < <(missing_packages)
    [ "${#packages[@]}" -gt 0 ] || return 0
    if ! command -v apt-get >/dev/null || ! may_be_root; then
        fail "missing, and not allowed to install: ${packages[*]} (as root: apt-get install ${packages[*]})"
    fi
    say "installing with apt: ${packages[*]}"
    as_root apt-get update -qq
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}" >&2
}

# The parts of the Rust toolchain that are missing, one per line.
missing_components() {
    cargo fmt --version >/dev/null 2>&1 || echo rustfmt
    cargo clippy --version >/dev/null 2>&1 || echo clippy
}

install_components() {
    local components
    mapfile -t components < <(missing_components)
    [ "${#components[@]}" -gt 0 ] || return 0
    say "adding to the Rust toolchain: ${components[*]}"
    { command -v rustup >/dev/null && rustup component add "${components[@]}" >&2; } ||
        fail "missing: ${components[*]} (rustup component add ${components[*]}, or get them as you got Rust)"
}

# Installs a requirements file into .venv, unless that very file is installed already.
install_requirements() {
    local file=$1 stamp=.venv/installed-$1
    cmp -s "$file" "$stamp" && return 0
    say "installing $file into .venv"
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --requirement "$file" >&2 ||
        fail "pip could not install $file: is there a way to the package index?"
    cp "$file" "$stamp"
}

command -v cargo >/dev/null ||
    fail "missing: a Rust toolchain, $(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml) or newer"
install_components
install_packages
# One whose making was cut short has a python but no pip: it is made anew.
if ! [ -x .venv/bin/python ] || ! [ -x .venv/bin/pip ]; then
    say "making the virtualenv .venv"
    python3 -m venv --clear .venv
fi
install_requirements requirements.txt
if [ "${1:-}" = --bench ]; then
    install_requirements requirements-bench.txt
fi
