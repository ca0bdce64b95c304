# Tare. `make quickstart` for a first look, `make test` for the tests; both install what is missing.
SHELL := /bin/sh
GO ?= go
export CGO_ENABLED = 0
# One set of flags for all, so that the go command compiles each package once. What debuggers read is a sixth of the compiler's work,
# and neither the program nor `go test` keeps it.
export GOFLAGS += -buildvcs=false -trimpath -gcflags=all=-dwarf=false
COMMIT := $(shell git describe --always --dirty --abbrev=12 --exclude '*' 2>/dev/null)
LDFLAGS := -s -w -X main.release=$(COMMIT)

.PHONY: build install quickstart test test-more test-kubernetes dist fuzz bench lint cross generate cuda

# The programs that guests get are embedded into tare, so they come first. TAGS=lean leaves out Parquet, which is a quarter of
# what is compiled.
build:
	@scripts/programs
	$(GO) build -tags '$(TAGS)' -ldflags '$(LDFLAGS)' -o bin/tare ./cmd/tare

PREFIX ?= /usr/local
install: build
	install -D bin/tare $(DESTDIR)$(PREFIX)/bin/tare

quickstart:
	@scripts/quickstart

test:
	@scripts/test

# What is too long for test: the packages, installed and compared.
test-more:
	@scripts/test-more

# Fleets on a real Kubernetes cluster of one node, which is built once.
test-kubernetes:
	@scripts/test-kubernetes

# What others install, in bin/dist.
dist:
	@scripts/dist

fuzz:
	@scripts/fuzz $(TIME)

bench: build
	@scripts/install run bench
	@scripts/bench

lint:
	@scripts/lint

# What reads results is built for other systems too.
cross:
	GOOS=darwin GOARCH=arm64 $(GO) build -o /dev/null ./cmd/tare
	GOOS=windows GOARCH=amd64 $(GO) build -o /dev/null ./cmd/tare

# Kernels for NVIDIA's devices, by NVIDIA's compiler; no device is needed.
cuda:
	@scripts/cuda

# The tracers' BPF objects, the JSON schemas of files that people write, docs/reference.md, and golden files from what the code prints now: review the difference before you commit it.
generate:
	@scripts/generate
	CGO_ENABLED=0 $(GO) test $$(git grep -l '"tare/internal/golden"' -- 'desk/*_test.go' 'lab/*_test.go' 'schemas/*_test.go' | xargs dirname | sort -u | sed 's|^|./|') -update
	CGO_ENABLED=0 $(GO) test ./cmd/tare -run '^Test(SamplesAreReadAsBefore|ReferenceIsCurrent)$$' -update
