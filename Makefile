# Everything a contributor runs. `make` alone lists it.

# What the benchmarks are run with, e.g. BENCH_ARGS="--seconds 5".
BENCH_ARGS ?=
RELEASE := $(or $(CARGO_TARGET_DIR),target)/release

.DEFAULT_GOAL := help
.PHONY: help setup setup-bench build test demo lint fuzz bench-build bench-ingest bench-both bench-query bench-scribe-cat bench-start

help: ## List these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Install what is missing: Debian packages, and Python packages into .venv
	@scripts/setup.sh

setup-bench: ## The same, with DuckDB and chDB for the benchmarks
	@scripts/setup.sh --bench

build: setup ## Build the release binary, target/release/perflab
	cargo build --release --locked -p perflab

test: setup ## Run everything that must hold; the last line is `N passed, N failed`
	@scripts/test.sh

demo: setup ## Measure something, start perflab on loopback with it, and say the address
	@scripts/demo.sh

lint: ## Check the format and the lints, of the scripts too where shellcheck is installed
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	if command -v shellcheck >/dev/null; then shellcheck scripts/*.sh .ci/run; fi

fuzz: setup ## Run each fuzz target for FUZZ_SECONDS (60)
	@scripts/fuzz.sh

bench-build:
	cargo build --release --locked -p perflab -p perflab-bench

bench-ingest: setup-bench bench-build ## Durable ingest beside its limits and other stores; 1 when a bar fails
	$(RELEASE)/perflab-bench ingest $(BENCH_ARGS)

bench-both: setup bench-build ## Questions while rows come in; 1 when a bar fails
	$(RELEASE)/perflab-bench both $(BENCH_ARGS)

bench-query: setup-bench bench-build ## Questions over 100 million rows beside DuckDB and ClickHouse; 1 when a bar fails
	$(RELEASE)/perflab-bench query $(BENCH_ARGS)

bench-scribe-cat: setup bench-build ## `scribe_cat` beside /bin/true and one fdatasync; 1 when its bar fails
	$(RELEASE)/perflab-bench scribe-cat $(BENCH_ARGS)

bench-start: setup bench-build ## A killed server's start on a 1 GiB log; 1 when its bar fails
	$(RELEASE)/perflab-bench start $(BENCH_ARGS)
