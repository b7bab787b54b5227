# `make test` is all a contributor needs; the others are its parts and some tools.

.PHONY: test test-docker deps lint sim faults soak bench bench-peers order docs fuzz deny static

# The tests in containers come last, so that nobody overlooks what is said if they cannot be run.
test: deps lint
	cargo test --workspace --no-fail-fast
	scripts/test-docker --or-skip

# The same in real containers, with a Docker engine that runs here or a private one that is started and stopped for it.
test-docker: deps
	scripts/test-docker

deps:
	scripts/test-deps

lint:
	cargo fmt --all -- --check
	cargo clippy --workspace --all-targets -- -D warnings
	cargo clippy --test docker --test example -- -D warnings

# Writes the generated pages (reference, manual page, schema) and the expected messages anew. Look at the difference!
docs:
	BLESS=1 cargo test --workspace --quiet

# Made-up schedules against the core, from a series of their own if SIM_SERIES says so.
SIM_SCHEDULES ?= 1000000
SIM_SERIES ?= 0
sim:
	cargo run -p containerpilot-oracle -- --schedules $(SIM_SCHEDULES) --seed $(SIM_SERIES)

# Each of the first system calls of each kind fails once, in every way it can. One fault: FAULTS='loop:pipe2:3:EMFILE'.
FAULTS ?= all
faults:
	FAULTS='$(FAULTS)' cargo test --test faults -- --nocapture

# Chaos on the release binary with a real Consul, for half an hour; what is done when comes from a seed, which is printed.
SOAK_SECONDS ?= 1800
soak:
	cargo build --release
	SOAK_SECONDS=$(SOAK_SECONDS) SOAK_BINARY="$${CARGO_TARGET_DIR:-$(CURDIR)/target}/release/containerpilot" cargo test --test soak

bench:
	cargo bench --bench load --bench logs --bench supervise --bench discovery --bench control --bench simulate

# Finds out anew which functions and constants are used together (link-order.txt, link-order.ld): before a release, and when
# a start has become slower.
order: release = $${CARGO_TARGET_DIR:-$(CURDIR)/target}/release
order:
	cargo build --release
	mkdir -p "$(release)/order" && cp "$(release)/containerpilot" "$(release)/containerpilot.map" "$(release)/order"
	cargo bench --bench order -- write "$(release)/order/containerpilot"
	cargo build --release

# This program beside tini, s6, runit and others, which are installed where they are missing: writes docs/peers.md and its
# pictures. BENCH has further words: --quick, --rt, --scenes start,log, --peers floor,containerpilot,s6, --merge, --help.
BENCH ?=
bench-peers: static
	peers=$$(scripts/peers) && PATH="$$peers/bin:$$PATH" python3 benches/peers $(BENCH)

# A minute for each target, from what is kept in fuzz/corpus and from the golden cases of the tests. What is found goes
# to fuzz/found, and what breaks something to fuzz/artifacts: keep that in fuzz/corpus. Needs a nightly toolchain.
FUZZ_SECONDS ?= 60
FUZZ_TARGETS ?= $(basename $(notdir $(wildcard fuzz/fuzz_targets/*.rs)))
fuzz:
	@command -v cargo-fuzz >/dev/null || cargo install cargo-fuzz
	for target in $(FUZZ_TARGETS); do \
		scripts/fuzz-seeds $$target && mkdir -p fuzz/found/$$target && \
		cargo +nightly fuzz run $$target fuzz/found/$$target fuzz/corpus/$$target fuzz/seeds/$$target -- \
			-max_total_time=$(FUZZ_SECONDS) -max_len=4096 -timeout=10 -rss_limit_mb=1024 || exit 1; \
	done

# What the program is made of. Advisories need the network, for their database.
deny:
	@command -v cargo-deny >/dev/null || cargo install --locked cargo-deny
	cargo deny check bans licenses sources
	if cargo deny fetch db; then cargo deny check --disable-fetch advisories; \
	else echo "the advisory database cannot be reached: advisories were NOT checked"; fi

# One static binary with its checksum, and a Debian package, in target/dist. .cargo/config.toml says how it is linked.
static:
	scripts/dist
