# `make test` is all a contributor needs; the others are its parts and some tools.

.PHONY: test deps lint sim bench docs fuzz static

test: deps lint
	cargo test --workspace --no-fail-fast

deps:
	scripts/test-deps
	scripts/consul >/dev/null

lint:
	cargo fmt --all -- --check
	cargo clippy --workspace --all-targets -- -D warnings

# Writes the generated pages (reference, manual page, schema) and the expected messages anew. Look at the difference!
docs:
	BLESS=1 cargo test --workspace --quiet

# Made-up schedules against the core, from a series of their own if SIM_SERIES says so.
SIM_SCHEDULES ?= 1000000
SIM_SERIES ?= 0
sim:
	cargo run --release -p containerpilot-sim -- --schedules $(SIM_SCHEDULES) --seed $(SIM_SERIES)

bench:
	cargo bench --bench load --bench logs --bench supervise --bench discovery --bench control --bench simulate

# A minute for each target, with the corpus that is kept. Needs a nightly toolchain and cargo-fuzz.
FUZZ_SECONDS ?= 60
fuzz:
	@command -v cargo-fuzz >/dev/null || cargo install cargo-fuzz
	for target in template json5 decode; do \
		scripts/fuzz-seeds $$target && \
		cargo +nightly fuzz run $$target -- -max_total_time=$(FUZZ_SECONDS) -max_len=4096 -timeout=10 -rss_limit_mb=1024 || exit 1; \
	done

# The default build; .cargo/config.toml says how it is linked.
static:
	cargo build --release
