# `make test` tells whether a change is right, `make test-slow` proves more of the same. The other targets are parts of
# them, and tools.

.PHONY: test test-slow test-docker hostile panics deps lint sim search faults loom asan soak bench bench-peers docs pictures site fuzz deny static dist test-dist mutants

# Installs what is missing; format, clippy, all tests but the slow ones, part by part with their times.
test:
	scripts/test

# The slow tests (`#[ignore = "slow: …"]`): real waits of ten seconds and more, further containers, two minutes of
# chaos, and the exhaustive search.
test-slow:
	scripts/test --slow

# The tests in real containers, also the slow ones, with a running Docker engine or a private one that is started for
# them, and what the tests of the original assert.
test-docker: deps
	STATIC_BINARY="$$(scripts/static)" scripts/test-docker --include-ignored
	cargo test --test integration original::

# What hostile jobs must not be able to do.
hostile:
	cargo test --test integration --no-fail-fast hostile::

# Panics at every failpoint, in a release build.
panics:
	cargo test --release --features failpoints --test integration supervisor::panics::

# Installs missing dependencies of the tests.
deps:
	scripts/test-deps

lint:
	cargo fmt --all -- --check
	cargo clippy --workspace --all-targets -- -D warnings
	cargo clippy --workspace --test containers --test faults --test soak -- -D warnings

# Rewrites the generated pages (reference, scenarios, manual page, schema, llms.txt) and the expected messages. Review the diff!
docs:
	BLESS=1 cargo test --workspace --quiet

# Takes the pictures of the live page again, from the real program in Chromium. pngquant, where it is installed, makes
# them smaller.
pictures:
	PICTURES=1 cargo test --test integration page::pictures
	! command -v pngquant >/dev/null || pngquant --force --strip --ext .png docs/pictures/page*.png

# The manual as a web site with search, in target/site/VERSION; fails on a dead link. Not a part of `make test`, because
# installing mdBook for the first time takes minutes. `make test` checks the links of the pages.
site:
	scripts/site

# Random schedules against the core. SIM_SERIES selects another series.
SIM_SCHEDULES ?= 1000000
SIM_SERIES ?= 0
sim:
	cargo build --workspace --tests --bin containerpilot-oracle
	target/debug/containerpilot-oracle --schedules $(SIM_SCHEDULES) --seed $(SIM_SERIES)

# Every order of everything that can happen to plans of two or three jobs. SEARCH narrows it: SEARCH='--plans draining --depth 8'.
SEARCH ?=
search:
	cargo build --workspace --tests --bin containerpilot-oracle
	target/debug/containerpilot-oracle --exhaustive --jobs 2 --outside 0 --faults 1 --states 20000 $(SEARCH)
	target/debug/containerpilot-oracle --exhaustive --jobs 2 --outside 1 --faults 0 --states 20000 $(SEARCH)
	target/debug/containerpilot-oracle --exhaustive --jobs 2 --outside 2 --faults 1 --states 5000 $(SEARCH)
	target/debug/containerpilot-oracle --exhaustive --jobs 3 --outside 0 --faults 0 --states 2000 $(SEARCH)

# Changes the decisions of the core one by one: the core's tests or 20,000 random schedules must notice. MUTANTS_SHARD=k/n takes
# every nth change, beginning with the kth; 0/1 takes all. MUTANTS takes options of cargo-mutants, such as --re REGEX.
# The results are in target/mutants.out. A change that makes the tests hang counts as noticed (code 3).
MUTANTS_SHARD ?= 0/8
MUTANTS ?=
mutants:
	@command -v cargo-mutants >/dev/null || cargo install --locked cargo-mutants
	@mkdir -p target
	SIM_SCHEDULES=20000 cargo mutants -p containerpilot-core --sharding round-robin --shard $(MUTANTS_SHARD) \
		--output target $(MUTANTS) || [ $$? -eq 3 ]

# Makes the first system calls of each kind fail once, with every error. A single fault: FAULTS='loop:pipe2:3:EMFILE'.
FAULTS ?= all
faults:
	FAULTS='$(FAULTS)' cargo test --test faults -- --nocapture

# Tries all interleavings of the event loop and the log thread at their queue.
loom:
	cargo test --release --manifest-path tests/loom/Cargo.toml --target-dir target/loom

# The unit tests with the address sanitizer, except those that start processes: the sanitizer cannot follow a child that
# shares the memory of its parent. Needs a nightly toolchain.
asan:
	RUSTFLAGS=-Zsanitizer=address cargo +nightly test --lib --target-dir target/asan \
		--target "$$(rustc -vV | sed -n 's/^host: //p')" -- --skip process:: --skip runtime::

# Chaos test of the static release binary with a real Consul. The actions are derived from a seed, which is printed.
SOAK_SECONDS ?= 1800
soak:
	SOAK_SECONDS=$(SOAK_SECONDS) SOAK_BINARY="$$(scripts/static)" cargo test --test soak

bench:
	cargo bench --profile dist --workspace --bench load --bench logs --bench supervise --bench discovery --bench control --bench simulate --bench storm

# Compares with tini, s6, runit and others, which are installed if they are missing. Writes docs/peers.md and its charts.
# BENCH takes options: --quick, --rt, --scenes start,log, --peers floor,containerpilot,s6, --merge, --help.
BENCH ?=
bench-peers: static
	peers=$$(scripts/peers) && PATH="$$peers/bin:$$PATH" python3 benches/peers $(BENCH)

# Fuzzes each target for a minute, starting from fuzz/corpus and the golden cases of the tests. New inputs are in fuzz/found,
# crashes in fuzz/artifacts: copy those to fuzz/corpus. Needs a nightly toolchain.
FUZZ_SECONDS ?= 60
FUZZ_TARGETS ?= $(basename $(notdir $(wildcard fuzz/fuzz_targets/*.rs)))
fuzz:
	@command -v cargo-fuzz >/dev/null || cargo install cargo-fuzz
	for target in $(FUZZ_TARGETS); do \
		scripts/fuzz-seeds $$target && mkdir -p fuzz/found/$$target && \
		cargo +nightly fuzz run $$target fuzz/found/$$target fuzz/corpus/$$target fuzz/seeds/$$target -- \
			-max_total_time=$(FUZZ_SECONDS) -max_len=4096 -timeout=10 -rss_limit_mb=1024 || exit 1; \
	done

# Checks dependencies and licences. Advisories need the network, for their database.
deny:
	@command -v cargo-deny >/dev/null || cargo install --locked cargo-deny
	cargo deny check bans licenses sources
	if cargo deny fetch db; then cargo deny check --disable-fetch advisories; \
	else echo "cannot reach the advisory database: advisories were NOT checked"; fi

# The static binary of this machine: target/artifacts/containerpilot.
static:
	scripts/dist --binary

# The files of a release, in target/artifacts: for each architecture the static binary, packages, an archive and a
# software bill of materials; and checksums. ARCHITECTURES=amd64 selects. The default is both; docs/releases.md says
# what the other one needs.
ARCHITECTURES ?= amd64 arm64
dist:
	ARCHITECTURES='$(ARCHITECTURES)' scripts/dist

# Tests what `make dist` has left in target/artifacts, each binary as PID 1 (arm64 in an emulator), and builds
# everything once more, in other folders: the bytes must be the same. It takes longer than `make dist`, so it is a part
# of the release workflow and not of `make test`.
test-dist:
	scripts/test-dist
