# Needs Go, make and git. `make` alone says what there is.

export CGO_ENABLED = 0
# Without the path of the checkout in what is built, a fresh clone finds it in Go's cache.
export GOFLAGS := $(shell go env GOFLAGS) -trimpath

# Packages of the race subset: where goroutines meet. A test of theirs in which none meet says
# so itself, by redistest.NoRace. The longest comes first.
RACE     ?= ./queue ./worker ./inspect ./events ./internal/races ./agentwait ./reaper ./internal/faultproxy
FUZZTIME ?= 10s
# Only the packages that have targets: to list the tests of a package, go links it.
FUZZED    = $$(grep -rl --include='*_test.go' '^func Fuzz' . | sed 's|/[^/]*$$||' | sort -u)
# Packages whose tests wait more than they compute: they run beside the others. In both
# lists the longest comes first.
WAITING  ?= ./internal/misuse ./internal/faults ./internal/shards ./worker ./internal/redisproc ./reaper
LONGEST  ?= ./internal/races ./queue ./internal/model ./internal/planted ./bench ./agentwait
# One test binary.
TIMEOUT  ?= 270s

.PHONY: help demo test ci long fmt vet lint fuzz race planted redis bench clean

help: ## What there is (this)
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-7s  %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## A task that hangs is ended on time, on the embedded server
	@go run ./cmd/curfew demo

test: redis ## All tests; installs redis-server if there is none
	@go run ./internal/tally -minimum .ci/minimum -beside '$(WAITING)' -- -timeout $(TIMEOUT) $(LONGEST) ./...

ci: ## What a landing must pass: checks, race subset, and both README commands in a fresh clone
	@.ci/steps

long: redis ## The tests with longer loops, and longer fuzzing: up to 90 minutes
	@CURFEW_LONG=1 go run ./internal/tally -minimum .ci/minimum -- -timeout 90m -count 1 ./...
	@scripts/fuzz 60s

fmt: ## Format the Go code
	@gofmt -w .

vet: ## go vet
	@go vet ./...

lint: ## staticcheck
	@go tool staticcheck ./...

fuzz: ## Each fuzz target for FUZZTIME (10s)
	@scripts/fuzz $(FUZZTIME) $(FUZZED)

race: redis ## A subset with the race detector; installs gcc if there is none
	@scripts/gcc
	@CGO_ENABLED=1 go run ./internal/tally -- -race -short -p 2 -timeout 10m $(RACE)

planted: redis ## Plant known bugs in the Lua: the tests must find each within a minute
	@go run ./internal/planted

redis: ## Install redis-server >= 7 if there is none; nothing is started
	@scripts/redis

bench: redis ## What Curfew costs and how fast it is, on a Redis of its own
	@for figure in counts micro memory throughput detect; do go run ./cmd/curfew bench $$figure || exit; done

clean: ## Remove what was built, and Go's record of tests that passed
	@rm -rf bin
	@go clean -testcache
