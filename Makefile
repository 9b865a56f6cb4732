# Two commands do everything: `make run` shows the main job working, `make test` passes the tests.
.PHONY: run test test-real test-kills test-seeds test-kills-real bench check lint ui browser

CARGO ?= cargo

# By the name of the program, not of the package: a package alone would be built again with other features.
run: ui            ## start everything in one process and watch the examples become Synced and Healthy
	$(CARGO) run --bin tiphys -- up

test: ui check     ## format, lints, project checks (a test of xtask), every test that needs no cluster
	cd ui && npm test --silent
	scripts/with-skips scripts/run-tests

# Where clippy is the compiler of the workspace's crates (.ci/run), the build of the tests lints.
check:
	$(CARGO) fmt --all --check
	$(if $(RUSTC_WORKSPACE_WRAPPER),,$(CARGO) clippy --workspace --all-targets -- -D warnings)

lint: check        ## what the compiler and the project checks find, without the tests
	$(CARGO) xtask tidy

# Not `npm ci`: it refuses where a registry does not carry the optional packages of other platforms.
ui/dist/index.html: $(shell find ui/src ui/public ui/index.html ui/vite.config.ts ui/package-lock.json -type f 2>/dev/null)
	cd ui && npm install --no-save --no-audit --no-fund --silent && npm run --silent build

ui: ui/dist/index.html

browser: ui        ## the web UI in a real browser, following Git; says so when there is no Chromium
	$(CARGO) build --bin tiphys
	cd ui && npm test --silent && TIPHYS_BIN=$(abspath $(or $(CARGO_TARGET_DIR),target))/debug/tiphys npm run --silent e2e

# Nothing may be skipped here but what needs the genuine argocd (ARGOCD_CLI), which this repository does not build, or Dex where its module cannot be had.
test-real:         ## the same scenarios against a real control plane (built on first use: 7 to 12 minutes)
	scripts/control-plane build > /dev/null
	TIPHYS_ALLOW_SKIP="$${TIPHYS_ALLOW_SKIP-$(if $(ARGOCD_CLI),dex,dex,argocd)}" scripts/with-skips scripts/test-real

test-kills:        ## the catalogue killed at 408 moments (`make test` has 24), and the controller at each write of each deletion
	TIPHYS_KILLS=68 $(CARGO) test --workspace --test cli -- --nocapture catalog_kill
	TIPHYS_FAULTS=all $(CARGO) test --workspace --test controllers -- --nocapture the_same_with_a_death_at_each_write

# Stopped and started again, it goes on where it was: `make test-seeds SEEDS=5000 FIRST=5001 JOBS=2`.
test-seeds:        ## ApplicationSets, notifications and the hydrator under 20,000 seeds of faults (hours; SEEDS=N plays N, FIRST=S begins there)
	SEEDS=$(or $(SEEDS),20000) FIRST=$(or $(FIRST),1) scripts/test-seeds

test-kills-real:   ## the controller at each write of each deletion, on a real control plane (`make test-real` has a few)
	scripts/control-plane build > /dev/null
	scripts/test-real --kills

bench: ui          ## figures of this machine
	$(CARGO) build --release --package tiphys-cli
	$(CARGO) xtask bench fleet --apps 300
