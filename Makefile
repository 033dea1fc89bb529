# `make` alone lists what can be made.
.DEFAULT_GOAL := help

BIN := .venv/bin
# rustup's tools are found even where no shell profile names them.
export PATH := $(or $(CARGO_HOME),$(HOME)/.cargo)/bin:$(PATH)
CARGO := PYO3_PYTHON=$(CURDIR)/$(BIN)/python cargo
# For cargo, for example CARGO_FLAGS=--locked
CARGO_FLAGS ?=

# Folders that hold Python code.
PYTHON = $(shell find bench docs python scripts tests -name '*.py' 2>/dev/null | cut -d/ -f1 | sort -u)

# All files of Rust: `cargo fmt` does not find the modules that macros declare.
RUST = $(shell find bench crates -name '*.rs' 2>/dev/null)

# $(call LOCK,GROUP,FILE): one list for every platform and every Python that is supported.
LOCK = build/lock/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 \
	--fork-strategy fewest --generate-hashes --no-emit-index-url --no-annotate \
	--custom-compile-command "make lock" --group $(1) --output-file $(2)

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' Makefile

.PHONY: setup
setup: ## Leave the command at .venv/bin/lasthop (NO_INSTALL=1: install no tools, name those missing)
	@scripts/setup.sh

.PHONY: setup-gateway
setup-gateway:
	@scripts/setup.sh gateway

.PHONY: demo
demo: ## Simulate TCP over a noisy satellite hop, without error notification and with it
	@scripts/setup.sh lab
	@$(BIN)/lasthop demo

.PHONY: pictures
pictures: setup ## Draw README's picture anew
	$(BIN)/lasthop demo --output docs/images/demo.png

# Programs in examples/, which no test runs, are compiled by `make lint`.
.PHONY: test
test: ## Run all tests
	@scripts/setup.sh dev
	PYO3_PYTHON=$(CURDIR)/$(BIN)/python PATH="$(PATH)" $(BIN)/python scripts/tests.py $(CARGO_FLAGS)

.PHONY: soak
soak: ## Longer tests: 100,000 random cases of each property (CASES=n), ten times that for split connections; larger models; every point of every sweep
	@scripts/setup.sh dev
	PROPTEST_CASES=$(or $(CASES),100000) $(CARGO) test --profile soak $(CARGO_FLAGS) \
		-p lasthop-tcp -p lasthop-host -p lasthop-srp --test it
	PROPTEST_CASES=$(or $(CASES),100000) $(CARGO) test --profile soak $(CARGO_FLAGS) \
		-p lasthop-middlebox --test it -- handoffs
	PROPTEST_CASES=$(or $(CASES),100000)0 $(CARGO) test --profile soak $(CARGO_FLAGS) \
		-p lasthop-middlebox --test it -- --skip handoffs
	$(CARGO) test --profile soak $(CARGO_FLAGS) -p lasthop-tcp -p lasthop-srp --lib model -- --ignored --nocapture
	$(CARGO) test --profile soak $(CARGO_FLAGS) -p lasthop-lab -p lasthop-gateway --test it -- --ignored
	$(BIN)/python -m pytest -m soak

.PHONY: field
field: setup-gateway ## Downloads over bad hops in namespaces, directly and through lasthopd; as root, with curl
	@$(BIN)/python bench/field.py

.PHONY: interop throughput fidelity worlds beside spoofing relay marker bench-field field-chaos field-pair field-outage field-roaming field-notify field-attack field-policies
interop: setup ## Our stack at one end, the kernel's at the other; minutes, as root, like the next six
	$(BIN)/python bench/kernel.py interop

throughput: setup ## Our stack's throughput beside the kernel's
	$(BIN)/python bench/kernel.py throughput

fidelity: setup ## The link emulator as ping, iperf3 and tshark see it
	$(BIN)/python bench/fidelity.py

worlds: setup ## Ten scenarios in the lab, on the testbed, and by the kernel's own TCP
	$(BIN)/python bench/worlds.py

beside: setup ## Seven transfers by our sender and by the kernel's
	$(BIN)/python bench/beside.py

spoofing: setup ## Downloads between two kernels with a spoofer on their path, as tshark sees them
	$(BIN)/python bench/spoofing.py

bench-field: setup-gateway ## lasthopd beside the kernel, PEPsal and HAProxy (FULL=1: every hop, some hours)
	$(BIN)/python bench/field_matrix.py $(PARTS)

field-chaos: setup-gateway ## 10,000 connections through lasthopd under outages, restarts and upgrades, 30 minutes in each mode (CHAOS="--minutes 5 pair")
	$(BIN)/python bench/field_chaos.py $(CHAOS)

field-pair: setup-gateway ## What a pair of gateways costs the machine: throughput and CPU time; two minutes
	$(BIN)/python bench/field_pair.py $(PAIR)

field-outage: setup-gateway ## Time from the end of an outage until new data arrives, through lasthopd and others; a quarter of an hour
	$(BIN)/python bench/field_outage.py

field-roaming: setup-gateway ## A download through ten handoffs between base stations, by lasthopd, TCP and MPTCP; half an hour
	$(BIN)/python bench/field_roaming.py

field-notify: setup-gateway ## Goodput over hops that damage packets, with notices of them and without; ten minutes
	$(BIN)/python bench/field_notify.py

field-attack: setup-gateway ## Downloads through lasthopd while it is flooded; half an hour (ATTACK="--cases SYNs spoof")
	$(BIN)/python bench/field_attack.py $(ATTACK)

field-policies: setup-gateway ## Table 3.7 of obanaik2003 by kernels with the controls of lasthopd cc; 20 minutes
	$(BIN)/python bench/field_policies.py

relay: setup ## The CPU time and memory of split connections
	$(BIN)/python bench/relay.py

marker: setup ## The nanoseconds of a packet that is marked (SPEP), in the kernel and in user space; as root
	$(BIN)/python bench/marker.py

.PHONY: lint
lint: ## Check formatting, lints and types
	@scripts/setup.sh dev lint
	rustfmt --check $(RUST)
	$(CARGO) clippy --workspace --all-targets $(CARGO_FLAGS) -- -D warnings
	$(BIN)/ruff check $(PYTHON)
	$(BIN)/ruff format --check $(PYTHON)
	$(BIN)/mypy $(PYTHON)
	@if command -v shellcheck >/dev/null; then set -x; shellcheck scripts/*.sh .ci/run crates/gateway/tests/package/*.sh crates/gateway/dist/deb/*; \
	else echo "lint: no shellcheck here, scripts not checked"; fi

.PHONY: format
format: ## Format all code
	@scripts/setup.sh dev lint
	rustfmt $(RUST)
	$(BIN)/ruff check --fix-only $(PYTHON)
	$(BIN)/ruff format $(PYTHON)

.PHONY: page
page: ## Build the page that compares remedies in a browser into build/book/what-if
	@scripts/setup.sh dev wasm
	PATH="$(PATH)" $(BIN)/python docs/what_if.py build/book/what-if -- --quiet $(CARGO_FLAGS)

.PHONY: book
book: page ## Build the book into build/book, running its notebooks, and the Rust reference into target/doc
	$(BIN)/sphinx-build -W --keep-going -q -d build/doctrees docs build/book
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps $(CARGO_FLAGS)

.PHONY: wheel
wheel: setup ## Build a wheel for any Python from 3.11 on into build/wheel
	rm -rf build/wheel
	PIP_NO_INDEX=1 $(BIN)/maturin build --quiet --release --out build/wheel $(CARGO_FLAGS)

.PHONY: deb
deb: ## Build a Debian package of lasthopd into build/gateway (needs `cargo install cargo-deb`)
	@cargo deb --version >/dev/null 2>&1 || { echo "make deb needs cargo-deb: cargo install cargo-deb --locked"; exit 2; }
	cargo build --release $(CARGO_FLAGS) -p lasthop-gateway
	mkdir -p build/gateway
	rm -f build/gateway/*.8
	target/release/lasthopd man build/gateway
	target/release/lasthopd completions bash >build/gateway/lasthopd.bash
	target/release/lasthopd completions zsh >build/gateway/_lasthopd
	target/release/lasthopd completions fish >build/gateway/lasthopd.fish
	cargo deb --no-build --strip --quiet -p lasthop-gateway --output build/gateway/

.PHONY: deb-try
deb-try: deb ## Install and replace the Debian package in a new Debian with systemd (as root; needs debootstrap, systemd-nspawn)
	crates/gateway/tests/package/try.sh "$$(ls -t build/gateway/lasthopd_*.deb | head -n 1)"

# For `make fuzz`.
SECONDS ?= 60
SEED ?= 1

.PHONY: fuzz
fuzz: ## Read damaged packets for SECONDS=60, from SEED=1
	cargo run --release --quiet $(CARGO_FLAGS) -p lasthop-wire --example fuzz -- $(SECONDS) $(SEED)

.PHONY: bench
bench: setup ## Compare speed and results with peers
	$(BIN)/python bench/compare.py

.PHONY: packetdrill
packetdrill: setup ## Play public scripts against our TCP (PACKETDRILL=program SCRIPTS=folder)
	@test -n "$(PACKETDRILL)" -a -n "$(SCRIPTS)" || \
		{ echo "make packetdrill PACKETDRILL=program SCRIPTS=folder: see docs/conformance.md"; exit 2; }
	cargo build --release --quiet $(CARGO_FLAGS) -p lasthop-packetdrill
	$(BIN)/python bench/packetdrill/run.py "$(PACKETDRILL)" "$(SCRIPTS)" $(ONLY)

.PHONY: lock
lock: ## Pin the newest Python packages that pyproject.toml allows
	python3 -m venv build/lock
	build/lock/bin/python -m pip install --quiet 'uv>=0.9,<1'
	$(call LOCK,build,requirements.lock) pyproject.toml
	$(call LOCK,develop,requirements-dev.lock) --constraint requirements.lock

.PHONY: clean
clean: ## Remove everything that was made here
	rm -rf .venv build target python/lasthop/_lasthop*.so
	rm -rf .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find bench docs python tests -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true
