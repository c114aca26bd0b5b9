# `make help` lists the targets from their ## comments.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.NOTPARALLEL:
.DEFAULT_GOAL := help

FUZZTIME ?= 10s
# Built once into bin/, since `go run` of a version asks the network each time.
STATICCHECK := bin/staticcheck-v0.8.2/staticcheck
STRIPE_MOCK := bin/stripe-mock

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-16s %s\n", $$1, $$2 }' Makefile

.PHONY: build
build: ## bin/onsale
	go build -o bin/onsale ./cmd/onsale

.PHONY: run
run: build ## the server with demo content at http://localhost:8080
	bin/onsale serve --demo --listen 127.0.0.1:8080 --data data/demo

.PHONY: demo
demo: build ## simulated buyers storm a 50,000-seat arena, then an audit
	bin/onsale demo --seats 50000 --buyers 30000

.PHONY: setup
setup: $(STRIPE_MOCK) ## installs what the tests need (root on Debian), or says what is missing
	@scripts/setup

.PHONY: stripe-mock
stripe-mock: $(STRIPE_MOCK) ## Stripe's own mock, for the shapes of our calls

$(STRIPE_MOCK):
	GOBIN=$(abspath $(@D)) go install github.com/stripe/stripe-mock@v0.203.0

.PHONY: test
test: setup ## all tests, once, with the race detector
	@scripts/test

.PHONY: test-short
test-short: setup ## the tests' short forms, without the race detector
	@go build -o bin/gotest ./scripts/gotest
	@bin/gotest -short ./...

.PHONY: quick
quick: ## for each commit, within 90 s: build, vet, tests of what changed
	@scripts/quick

$(STATICCHECK):
	GOBIN=$(abspath $(@D)) go install honnef.co/go/tools/cmd/staticcheck@v0.8.2

.PHONY: lint
lint: $(STATICCHECK) ## gofmt, go vet, staticcheck, import directions
	@unformatted=$$(gofmt -l cmd internal scripts); \
	if [ -n "$$unformatted" ]; then echo "not gofmt'ed: $$unformatted" >&2; exit 1; fi
	go vet ./...
	$(STATICCHECK) ./...
	go test ./internal/lint

.PHONY: generate
generate: ## makes the generated files anew
	go generate ./...

.PHONY: fresh
fresh: ## fails when a generated file is stale
	@scripts/fresh

.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME (10s)
	@FUZZTIME=$(FUZZTIME) scripts/fuzz

.PHONY: vulnerabilities
vulnerabilities: ## known vulnerabilities, where their database can be reached
	@scripts/vulnerabilities

.PHONY: check
check: setup build lint fresh vulnerabilities ## what CI runs: lint, fresh files, vulnerabilities, fuzz in rotation, all tests with race
	@FUZZTIME=10s FUZZMAX=8 scripts/fuzz
	@scripts/test

.PHONY: soak
soak: setup ## the long forms of the tests, and a minute for every fuzz target
	@ONSALE_SOAK=10 TEST_TIMEOUT=6h scripts/test
	@FUZZTIME=60s scripts/fuzz

.PHONY: bench
bench: setup build ## holds and whole sales on both databases, the reference designs beside ours
	bin/onsale bench holds --seats 2000 --buyers 100000 --per-hold 2 --ledger sqlite --design onsale,conditional --json
	bin/onsale bench holds --seats 2000 --buyers 100000 --per-hold 2 --ledger postgres --design onsale,conditional --json
	bin/onsale bench sale --seats 50000 --ledger sqlite --design onsale,bare --json
	bin/onsale bench sale --seats 50000 --ledger postgres --design onsale,bare --json
