# What a person does with this repository. Every target makes ready what it
# needs; `make` alone lists them.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# A driver's version is the nearest tag of that driver, and "devel" where there
# is none: a clone without tags, or a tree that is no clone at all.
version = $(shell git describe --tags --match '$(1)/v*' --dirty 2>/dev/null | sed 's,^$(1)/,,' | grep . || echo devel)

# Nobody looks for what only a debugger reads, and to write it is an eighth of the time that
# everything takes to compile. What go is told elsewhere stays.
export GOFLAGS := $(strip $(shell go env GOFLAGS 2>/dev/null) -gcflags=all=-dwarf=false)

# Each module has to build alone, so the workspace is left out: what it would
# lend one module from another must not hide in a release.
# grpcnotrace drops a debug page of grpc that keeps the linker from leaving out
# unused methods, 3 MiB of resident memory on every node.
go_build = GOWORK=off go build -trimpath -tags grpcnotrace

# A tool's path, built as hack/go.mod pins it. Go keeps it in its build cache.
tool = "$$(cd hack && GOWORK=off go tool -n $(1))"

# Time per benchmark; raise it for numbers to quote: make bench BENCHTIME=3s
BENCHTIME ?= 1s

##@ Use

.PHONY: help
help: ## List the targets.
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  %-15s %s\n", $$1, $$2}' Makefile

.PHONY: build
build: setup ## Build the drivers into bin/.
	@echo "building bin/pernode and bin/gitvolume$$([ -e bin/gitvolume ] || echo ', the first time for minutes')"
	@cd pernode && CGO_ENABLED=0 $(go_build) -ldflags '-s -w -X liken.sh/csicommon/build.version=$(call version,pernode)' -o ../bin/pernode ./cmd/pernode
	@# libgit2 is the system's.
	@cd gitvolume && CGO_ENABLED=1 $(go_build) -ldflags '-s -w -X liken.sh/csicommon/build.version=$(call version,gitvolume)' -o ../bin/gitvolume ./cmd/gitvolume
	@echo "built bin/pernode $$(bin/pernode --version)"
	@echo "built bin/gitvolume $$(bin/gitvolume --version)"

.PHONY: demo
demo: build ## See the drivers work, without a cluster; a minute, once they are built.
	@echo "building the demo"
	@go build -o bin/demo ./hack/demo
	@bin/demo

##@ Cluster

.PHONY: cluster
cluster: bin/cluster bin/helm ## Start a two-node Kubernetes with both drivers (root; the first time builds it, 25 minutes).
	@bin/cluster up
	@bin/cluster install

.PHONY: cluster-down
cluster-down: bin/cluster ## Stop it and delete what it kept; what was built stays.
	@bin/cluster down

.PHONY: images
images: bin/cluster ## Build the drivers' images, and load them into the cluster if it runs.
	@bin/cluster images 'pernode=$(call version,pernode)' 'gitvolume=$(call version,gitvolume)'

# As a tool of Go's, it would be compiled with what only debuggers read.
.PHONY: bin/golangci-lint
bin/golangci-lint: setup
	@cd hack && GOWORK=off go build -o ../bin/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint

# Go knows best whether anything changed.
.PHONY: bin/cluster
bin/cluster:
	@hack/setup cluster
	@echo "building bin/cluster"
	@go build -o bin/cluster ./hack/cluster

# The pages install with it, and the tests of the charts run it: built before them, it takes
# nothing of their time limit.
.PHONY: bin/helm
bin/helm: setup
	@echo "building bin/helm$$([ -e bin/helm ] || echo ', the first time for minutes')"
	@cd hack/helm && GOWORK=off go build -o ../../bin/helm helm.sh/helm/v4/cmd/helm

##@ Check

.PHONY: test
test: setup format alone tidy vet lint unit ## What CI runs first: format, modules, vet, lint, tests, most of the drivers' with -race.

# The packages whose tests start most programs.
many_helpers := internal/(nodevolume|published|remote)$$|/nodetest$$

# What the drivers are made of, for the cache of tests that compile them as they run.
sources = $(shell find csicommon pernode gitvolume -type f \( -name '*.go' -o -name 'go.*' \) -not -name '*_test.go' -print0 | sort -z | xargs -0 sha256sum | sha256sum)

.PHONY: unit
unit: export LIKEN_TEST_SOURCES = $(sources)
unit: setup bin/helm ## Unit and integration tests of every module, most of the drivers' with the race detector.
	@# Tests mostly wait, for disks and for servers that do not answer.
	@MODULES='csicommon pernode' hack/each go test -race -p 4 -timeout 30m ./...
	@# git runs the binary of the tests each time as its helper. Where that is by the
	@# thousand, the race detector makes a minute of it many.
	@cd gitvolume && all=$$(go list ./...) && \
	go test -race -p 3 -timeout 30m $$(grep -vE '$(many_helpers)' <<<"$$all") && \
	go test -p 2 -timeout 30m $$(grep -E '$(many_helpers)' <<<"$$all")
	@# Of what only runs on a developer's machine, the race detector would take minutes
	@# to compile Helm and the Kubernetes clients once more.
	@MODULES='e2e hack hack/licences' hack/each go test -timeout 15m ./...
	@# These read files outside their module. Go does not see those change, and
	@# would answer from its cache.
	@cd hack && go test -count=1 ./charts ./docs
	@# The race detector multiplies the memory that these measure.
	@cd csicommon && go test -run '^TestMemory$$' ./persistentvolume
	@cd gitvolume && go test -run '^TestLeaks$$' ./internal/history

# What a target found before is tried by each run of the tests; this looks for more.
.PHONY: fuzz
fuzz: export TIME ?= 30s
fuzz: setup ## Fuzz every parser of outside bytes, for TIME (30s) each.
	@hack/fuzz

# Not a part of test: it needs what a machine for tests may lack (see hack/cluster).
.PHONY: e2e
e2e: ## End-to-end tests on the local cluster; starts one for them when none runs (root).
	@hack/e2e

# Nor is this: it looks for what no test was written for, for as long as one likes.
DRIVER ?=
TIME ?= 10m
SEED ?=
.PHONY: soak
soak: setup ## Torture the drivers and check what is left (root): make soak DRIVER=pernode TIME=10m SEED=7
	@TIME='$(TIME)' SEED='$(SEED)' hack/soak $(DRIVER)

# The linter keeps its findings with their paths, but by what the files say, and leaves
# out later what a file excuses: of a cache that two checkouts share, it would report
# files of the other one, and what it cannot read there is excused by nothing.
.PHONY: lint
lint: export GOLANGCI_LINT_CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/liken-lint$(CURDIR)
lint: bin/golangci-lint ## golangci-lint and actionlint, licences, known vulnerabilities of what is linked.
	@# All at once: what the modules import in common is looked at once.
	@bin/golangci-lint run --allow-parallel-runners $$(go list -m -f '{{.Dir}}/...')
	@$(call tool,actionlint) .github/workflows/*.yaml
	@cd hack/licences && GOWORK=off CGO_ENABLED=0 go run . check ../../pernode ./cmd/pernode && \
	GOWORK=off go run . check ../../gitvolume ./cmd/gitvolume
	@hack/vulnerabilities/scan

.PHONY: vet
vet: setup
	@GOWORK=off hack/each go vet -tags e2e,soak ./...

.PHONY: format
format: setup
	@files=$$(gofmt -l $$(go list -m -f '{{.Dir}}')); \
	[ -z "$$files" ] || { echo "gofmt would change:"; echo "$$files"; exit 1; }

# A module that builds only inside the workspace cannot be released.
.PHONY: alone
alone: setup
	@GOWORK=off hack/each go build -o /dev/null ./...

# What only pins tools is no part of the workspace. Cold, it downloads what the
# cluster is built from, which make e2e needs anyway; warm, it takes a second.
.PHONY: tidy
tidy: setup
	@GOWORK=off hack/each go mod tidy -diff
	@for module in hack/helm hack/govulncheck hack/cluster/build/*; do \
		(cd "$$module" && GOWORK=off go mod tidy -diff) || { echo "in $$module"; exit 1; }; \
	done
	@hack/versions

##@ Release

.PHONY: release-dry-run
release-dry-run: ## Rehearse a release: DRIVER=pernode or gitvolume, VERSION=vX.Y.Z where not the next (root).
	@hack/setup cluster
	@# Not with the others in tidy: cosign's modules are a gigabyte that only this needs.
	@cd hack/release/tools && GOWORK=off go mod tidy -diff
	@go run ./hack/release rehearse '$(DRIVER)' $(VERSION)

##@ Measure

.PHONY: bench
bench: setup ## Benchmarks against peers, and those of the packages.
	@hack/each go test -run '^$$' -bench . -benchtime $(BENCHTIME) -benchmem -timeout 30m ./...

# setup runs before everything and says nothing when nothing is missing.
.PHONY: setup
setup:
	@hack/setup
