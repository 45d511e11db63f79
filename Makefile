# Needs Go, make and git. `make` without a target lists the targets.

export CGO_ENABLED = 0
# With -trimpath the build does not depend on the folder, so a fresh clone uses Go's build cache.
export GOFLAGS := $(shell go env GOFLAGS) -trimpath

# Packages that run with the race detector: those whose goroutines share data. internal/test/races is for
# queue, which the others use too. A test that shares
# none calls redistest.NoRace. The longest package comes first.
RACE     ?= ./internal/test/races ./httpapi ./events ./worker ./reaper ./internal/test/faultproxy
FUZZTIME ?= 10s
# Only the packages that have fuzz targets: go must link a package to list its tests.
FUZZED    = $$(grep -rl --include='*_test.go' '^func Fuzz' . | sed 's|/[^/]*$$||' | sort -u)
# The packages that take the longest. make test begins with them, and with some that wait beside some that compute.
LONGEST  ?= ./internal/test/misuse ./httpapi ./internal/test/model ./internal/test/races ./cmd/curfew ./bench ./queue ./internal/test/faults ./flow \
	./worker ./cmd/curfew-bench ./internal/test/shards ./metrics ./internal/test/telemetry ./reaper ./inspect ./internal/tool/planted
# The limit for one test binary. Only a hang exceeds it.
TIMEOUT  ?= 15m
# The tests of real time run alone, after all others.
LAST     ?= ./internal/test/timing

.PHONY: help demo test ci long stall drawn fmt vet lint fuzz race doors planted mutants lua docs redis room bench release clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-7s  %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## Show a task that hangs and is ended on time, on the embedded server
	@go run ./cmd/curfew demo

# go vet is a step of CI.
test: room redis ## Run all tests; installs redis-server if it is missing
	@go run ./internal/tool/tally -minimum .ci/minimum -last '$(LAST)' -- -vet=off -timeout $(TIMEOUT) $(LONGEST) ./...

ci: ## Run what a change must pass: checks, race subset, and both README commands in a fresh clone
	@.ci/steps

long: room redis ## Run all variants and repetitions of the tests, plant their delays, and fuzz longer: up to 90 minutes
	@CURFEW_LONG=1 CURFEW_PLANT=1 go run ./internal/tool/tally -minimum .ci/minimum -last '$(LAST)' -- -timeout 90m -count 1 ./...
	@scripts/fuzz 60s

stall: redis ## Run all tests but those of real time, and stop them and their servers at random for up to 1.5 s
	@go run ./internal/tool/tally -stall -- -vet=off -count 1 -timeout $(TIMEOUT) $$(go list ./... | grep -v -e /internal/test/timing -e /internal/tool/tally)

drawn: redis ## Run the long tests that the hash of the tree draws, for two minutes
	@go run ./internal/tool/drawn -for $(or $(FOR),2m)

fmt: ## Format the Go code
	@gofmt -w .

vet: ## Run go vet
	@go vet ./...

lint: ## Run staticcheck
	@go tool -modfile=tools.mod staticcheck ./...

fuzz: ## Run each fuzz target for FUZZTIME (10s); QUICK=1: without instrumentation
	@scripts/fuzz $(if $(QUICK),-quick) $(FUZZTIME) $(FUZZED)

race: redis ## Run a subset with the race detector; installs gcc if it is missing
	@scripts/gcc
	@CGO_ENABLED=1 go run ./internal/tool/tally -- -race -short -p 2 -timeout 10m $(RACE)

doors: redis ## Run the examples in Python, Node and shell, and the alerts in Prometheus; installs what is missing
	@scripts/doors
	@CURFEW_DOORS=1 go run ./internal/tool/tally -- -count 1 -timeout $(TIMEOUT) ./examples ./internal/test/deploy
	@CURFEW_DOORS=1 go test -count 1 -run '^TestTheExampleWorker' ./httpapi

planted: redis ## Plant known bugs in the Lua: the tests must find each one
	@go run ./internal/tool/planted

mutants: redis ## Edit the Lua and the Go at random places, and note what finds each; ARGS=-new: only new ones
	@nice go run ./internal/tool/planted mutants $(ARGS)

lua: redis ## Count the Lua instructions of each call; installs lua5.1 if missing; UPDATE=1: write them; PROFILE=fetch: where they are
	@scripts/lua
	@CURFEW_LUA=1 go test -count 1 ./internal/test/luacount $(if $(UPDATE),-run '^TestTheCostOfEachCall$$' -update) \
		$(if $(PROFILE),-v -run '^TestTheFunctionsOfACall$$' -profile '$(PROFILE)')

docs: ## Write the pages of docs/reference that are made from the code
	@for page in markdown:command.md metrics:metrics.md http:http.md openapi:openapi.json flow:flow.md schema:flow.schema.json; do \
		go run ./cmd/curfew __docs $${page%:*} < docs/reference/$${page#*:} > docs/reference/$${page#*:}.new && mv docs/reference/$${page#*:}.new docs/reference/$${page#*:} || exit; done
	@go run ./cmd/curfew-bench __docs markdown > docs/reference/bench.md.new && mv docs/reference/bench.md.new docs/reference/bench.md

redis: ## Install redis-server >= 7 if it is missing; starts no service
	@scripts/redis

room:
	@scripts/room

bench: redis ## Measure cost and speed, on a redis-server that it starts
	@for figure in counts micro memory throughput detect; do go run ./cmd/curfew-bench $$figure || exit; done

release: ## Build archives for all platforms into dist, twice, and compare; DIRTY=1: despite changes; COLD=1: without cache
	@go run ./internal/tool/release $(if $(DIRTY),-dirty) $(if $(COLD),-cold)

clean: ## Remove built files and Go's cache of test results
	@rm -rf bin dist
	@go clean -testcache
