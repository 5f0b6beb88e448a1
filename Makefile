# The commands that matter: make run, make test.
SHELL := /bin/bash
GO ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
TOOLS := $(GO) tool -modfile=tools.mod

.DEFAULT_GOAL := help
.PHONY: help build run test acceptance lint fuzz bench docs check simulate sdk sdk-generate screenshots release-snapshot

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

build: ## Build bin/millwright, without symbols for debuggers
	@mkdir -p bin
	$(GO) build -ldflags "-s -w -X millwright/cmd/cli.version=$(VERSION)" -o bin/millwright ./cmd/millwright

run: build ## Serve a demo factory: prints its webhooks and a curl line for each
	@test -d .millwright/demo || bin/millwright init --demo .millwright/demo
	bin/millwright serve --dir .millwright/demo

# SQLite, which is C made into Go, runs without the race detector's instructions, as it would behind cgo. So do
# the parsers of YAML, JSON Schemas and regular expressions, which start no goroutine and share nothing that
# changes; all that is ours runs with them. The race detector lets every program sleep for a second before it
# exits; the tests start thousands. Linking leaves out what only debuggers read. `make lint` runs go vet.
export GORACE = atexit_sleep_ms=0
PARSERS = go.yaml.in/... github.com/santhosh-tekuri/... regexp/...
export RACE = -race $(patsubst %,-gcflags=%=-race=false,modernc.org/... $(PARSERS))
GO_TEST = $(GO) test $(RACE) -vet=off -ldflags=-w -p 3 -parallel 4 -shuffle=on

test: ## Run the tests, with the race detector, on SQLite and a PostgreSQL of its own
	@.ci/needs git
	.ci/bubblewrap .ci/signing .ci/postgres $(GO_TEST) -timeout 40m -skip '^TestAcceptance' ./...

acceptance: ## Run the tests that take long or need more programs: crashes, replicas, a browser, both SDKs
	@.ci/needs git kubectl docker systemd-analyze
	MILLWRIGHT_KILLS=50 .ci/conformance .ci/helm .ci/goreleaser .ci/debian .ci/editors .ci/gitea .ci/agents .ci/chromium .ci/bubblewrap .ci/signing .ci/postgres $(GO_TEST) -timeout 60m -run '^(TestAcceptance.*|TestKill)$$' ./cmd/millwright ./reconcile ./runs/worker ./runs/worker/sandbox ./forge ./forge/bundle ./outbox ./api/mcp
	@$(MAKE) --no-print-directory sdk

sdk: ## Test both SDKs against the real server and api/openapi.yaml
	sdk/all test

sdk-generate: ## Write the types of both SDKs anew from api/openapi.yaml
	sdk/all generate

lint: ## go vet, staticcheck, gofumpt, govulncheck, tidy modules, alert rules
	$(GO) vet ./...
	$(TOOLS) staticcheck ./...
	@out=$$($(TOOLS) gofumpt -l $$(git ls-files '*.go')); test -z "$$out" || { echo "not gofumpt-ed:"; echo "$$out"; exit 1; }
	$(GO) mod tidy -diff
	sdk/all lint
	$(TOOLS) govulncheck ./... || { test $$? -ne 3 && echo "govulncheck could not reach its database: not checked" >&2; }
	@if command -v promtool >/dev/null; then cd deploy/prometheus && promtool check rules alerts.yaml && promtool test rules alerts_test.yaml; \
	  else echo "there is no promtool (Debian: prometheus): alert rules not checked" >&2; fi

fuzz: ## Run every fuzz target for FUZZTIME (default 30s)
	@set -e; for f in $$(grep -rlE '^func Fuzz' --include='*_test.go' .); do \
	  for t in $$(grep -oE '^func (Fuzz[A-Za-z0-9_]+)' $$f | awk '{print $$2}'); do \
	    echo "== $$(dirname $$f) $$t"; $(GO) test -run '^$$' -fuzz "^$$t$$" -fuzzminimizetime 1x -fuzztime $${FUZZTIME:-30s} $$(dirname $$f); done; done

simulate: ## Lose the power of copies that lack a sync, and run 10,000 seeds of the simulation, for a night: docs/reliability.md
	$(GO) test ./state -run '^TestAcceptancePowerMutants$$' -timeout 0 -v
	$(GO) test ./state/simtest -run '^TestServers$$' -seeds $${SEEDS:-10000} -first-seed $${FIRST_SEED:-1} -timeout 0 -v

bench: ## Measure, side by side: bench/README.md says what
	.ci/postgres $(GO) run ./bench/ingress
	$(GO) run ./bench/reconcile
	$(GO) run ./bench/validate

docs: ## Write the generated documents anew
	$(GO) test ./bounds ./schema ./schema/provider ./schema/report ./signature ./cmd/millwright -run 'Golden|Docs|Document|BrokenTrees|ChecksPage' -update
	@$(MAKE) --no-print-directory sdk-generate

demo-forge: ## Watch an issue become a pull request, on a Gitea of this machine (built once, about five minutes)
	.ci/gitea $(GO) test ./cmd/millwright -run '^TestDemoForge$$' -count 1 -timeout 0 -v -demo-forge

release-snapshot: ## Build the archives and packages of a release in dist/, without publishing
	.ci/goreleaser sh -c '"$$MILLWRIGHT_TEST_GORELEASER" release --snapshot --clean --skip=sign,sbom'

screenshots: ## Write docs/images anew, with the dashboard in a real browser, and VS Code
	.ci/editors .ci/chromium $(GO) test ./cmd/millwright -run '^(TestScreenshots|TestAcceptanceVSCode)$$' -count 1 -screenshots $(CURDIR)/docs/images

check: lint test acceptance ## What CI runs, and more
