# netsplit: `make help` lists what there is.

SHELL := /bin/bash
GO    ?= go
export GOFLAGS ?= -buildvcs=false

# The product, the clients of the shipped targets, and the programs for research:
# modules of their own, so that the drivers of the last two are not the product's.
MODULES := . deploy/clients deploy/examples/go e2e/research

# Debian packages. RUN is what a campaign on Redis needs, JAVA what those on
# Cassandra, Hadoop and ZooKeeper need, SCRIPT what the shipped scripts need, TEST
# what the tests use beside them: second opinions (tshark, ovs-ofctl, nft),
# Prometheus, Chromium.
RUN_PACKAGES  := openvswitch-switch iproute2 ethtool redis-server redis-sentinel redis-tools
SCRIPT_PACKAGES := $(RUN_PACKAGES) tarantool
JAVA_PACKAGES := openjdk-17-jdk-headless maven python3-pip
TEST_PACKAGES := $(SCRIPT_PACKAGES) $(JAVA_PACKAGES) nftables tshark prometheus chromium iputils-ping procps openssh-server python3-pytest python3-venv systemd binutils lintian
BENCH_PACKAGES := $(TEST_PACKAGES) openvswitch-testcontroller iperf3

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-14s %s\n", $$1, $$2}'

.PHONY: build
build: ## build bin/netsplit and the helper programs of the targets
	umask 022; $(GO) build -ldflags "-X main.version=$$(scripts/version.sh)" -o bin/ ./cmd/netsplit ./e2e/targets/gossip ./e2e/targets/pipeline
	@set -e; umask 022; cd deploy/clients; for d in $$(ls -d */ | grep -v workload); do $(GO) build -o ../../bin/$${d%/}-client ./$$d; done

OUT ?= bin
.PHONY: deb
deb: build ## build a Debian package with systemd units (OUT=folder, MAINTAINER='name <address>')
	@scripts/setup.sh binutils
	@scripts/deb.sh bin "$(OUT)"

.PHONY: setup setup-java setup-test setup-bench
setup: ## install what a campaign needs (root)
	@scripts/setup.sh $(RUN_PACKAGES)
setup-java: setup ## install what campaigns on Java systems need (root)
	@scripts/setup.sh $(JAVA_PACKAGES)
setup-test: ## install what the tests need (root)
	@scripts/setup.sh $(TEST_PACKAGES)
setup-bench: ## install what the benchmarks need (root)
	@scripts/setup.sh $(BENCH_PACKAGES)

.PHONY: demo
demo: setup build ## find a promise of Redis Sentinel that one cut breaks (root, under 6 minutes)
	@scripts/demo.sh

.PHONY: test
test: setup-test build lint ## run every test, real Open vSwitch and Redis included (root)
	@scripts/test.sh

.PHONY: check
check: lint ## run what every change must pass: no root, no network, under 2 minutes
	@$(GO) test -short -vet=off -p 4 $$(scripts/packages.sh pure)
	@for m in deploy/clients e2e/research; do $(GO) test -C $$m -short -vet=off ./... || exit 1; done

.PHONY: lint
lint: ## check formatting and go vet
	@test -z "$$(gofmt -l .)" || { echo "not formatted; run: gofmt -w $$(gofmt -l . | tr '\n' ' ')"; exit 1; }
	@for m in $(MODULES); do (cd $$m && $(GO) vet ./...) || exit 1; done
	@$(GO) vet -tags vectors,captures ./controller/of13 ./inference/framing

.PHONY: fuzz-short
fuzz-short: ## run each fuzz target for 30 s
	@scripts/fuzz.sh 30s

.PHONY: vectors
vectors: ## hold the codec against the test messages of other projects (FROM=folder of their checkouts; else they are fetched)
	@scripts/vectors.sh $(FROM)

.PHONY: captures
captures: ## measure what is suggested for binary protocols on labelled captures (FROM=folder of NAME.pcap, NAME.labels.tsv)
	@$(GO) test -count=1 -v -tags captures -run '^TestLabelledCaptures$$' ./inference/framing -captures "$(abspath $(or $(FROM),$(error captures: FROM=folder of captures and their labels)))"

# What the switch layer reads that others wrote: messages, sessions, what was
# heard of a testbed, testbed files.
FUZZ_SWITCH := controller controller/of13 testbed/learn/sketch testbed/config
TIME ?= 30m
.PHONY: fuzz-switch
fuzz-switch: ## run each fuzz target of the switch layer for TIME (default 30m)
	@scripts/fuzz.sh $(TIME) $(FUZZ_SWITCH)

.PHONY: soak
soak: setup-test build ## repeat the tests of the switch layer's hard hours 50 times (root, hours)
	@scripts/soak.sh

.PHONY: bench
bench: setup-bench build ## measure codec, gate, mirror and cuts, as ratios in one run (root)
	@scripts/bench.sh

.PHONY: bench-cuts
bench-cuts: setup-bench build ## measure 1,000 cuts and heals of each kind, with up to 50,000 flows (root, many hours)
	@scripts/bench.sh -only inforce,cuts -trials 1000 -many-trials 1000 -limit 24h

.PHONY: compare
compare: setup build ## measure cofi beside random on both targets (root, hours)
	@scripts/compare.sh

.PHONY: scripts-soak
scripts-soak: build ## play each shipped script 10 times, and those that must pass 20 times (root, half an hour)
	@scripts/setup.sh $(SCRIPT_PACKAGES)
	@scripts/soak-scripts.sh

.PHONY: soak-service
soak-service: setup-test build ## keep a daemon busy for an hour, kill it every two minutes, and say what was lost (root)
	@scripts/soak-service.sh

.PHONY: table3
table3: setup-java build ## repeat the evaluation of the CoFI paper, going on where it stopped (root, hours)
	@$(GO) build -C e2e/research -o ../../bin/table3 ./table3 && bin/table3 $(TABLE3) run

.PHONY: clean
clean: ## remove what was built
	rm -rf bin
