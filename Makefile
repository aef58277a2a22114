# What a developer types. Every target needs Go and nothing else that is not fetched by it.
GO ?= go
# vet runs all of vet once; each test would run a part of it again, also over what it imports.
TEST := $(GO) test -vet=off
BIN := bin
VERSION ?=
LDFLAGS := -s -w $(if $(VERSION),-X github.com/gardenlite/gardenlite/internal/version.version=$(VERSION))
# Packages whose tests start an API server each: one after another.
SERVER_TESTS := ./examples/extension ./internal/controlplane ./internal/controlplane/kubecontrollers ./internal/garden ./internal/landscape ./internal/node ./internal/node/programs ./internal/seed ./internal/seed/provider/clustertest ./internal/seed/seedhost ./internal/shootplane ./pkg/...
# One test of a whole landscape with the race detector.
RACE_TEST := ./internal/landscape/racetest
# All others.
UNIT_TESTS = $(filter-out $(shell $(GO) list $(SERVER_TESTS) $(RACE_TEST) ./e2e/...),$(shell $(GO) list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./...))
# Those of them that do not link Kubernetes.
RACE_UNIT_TESTS = $(filter $(UNIT_TESTS),$(shell $(GO) list -test -f '{{.ForTest}} {{join .Deps " "}}' ./... | grep -v ' k8s.io/kubernetes/' | cut -d' ' -f1))

.PHONY: all build up test check soak soak-kill soak-datastores soak-upgrade soak-extension soak-release soak-fuzz soak-units soak-servers soak-e2e unit smoke smoke-nocgo race servers e2e vet staticcheck format conformance conformance-api conformance-authorizer conformance-suites conformance-programs conformance-gardenctl conformance-shoot bench bench-up bench-shoot bench-kubeconfig bench-bastion bench-scale bench-workloads bench-stacks bench-snapshot bench-clock bench-authz generate verify-generate release release-check release-pages clean

all: build

build: ## bin/gardenlite
	$(GO) build -ldflags '$(LDFLAGS)' -o $(BIN)/gardenlite ./cmd/gardenlite

up: build ## starts a landscape in the foreground
	$(BIN)/gardenlite up

test: format unit smoke ## in minutes, after each change: units, and a landscape from its start to its end

check: vet staticcheck verify-generate race servers e2e ## what CI runs after test: analysis, data races, API servers, the suite against the binary
	@echo "The slowest tests:"
	@cat artifacts/*.json | $(GOTESTSUM) tool slowest --num 10

GOTESTSUM := $(GO) tool -modfile=hack/tools/go.mod gotestsum
# Tests of check, with their times in a file of this name.
check_tests = mkdir -p artifacts && $(2) $(GOTESTSUM) --format pkgname-and-test-fails --format-hide-empty-pkg \
  --hide-summary skipped --jsonfile artifacts/$(1).json -- -vet=off -ldflags '-s -w'

unit:
	$(TEST) -ldflags '-s -w' -timeout 10m $(UNIT_TESTS)

smoke: build
	$(E2E) -ldflags '-s -w' -timeout 10m ./e2e/smoke

# As in a release. The first time compiles Kubernetes once more.
NOCGO := CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)'

smoke-nocgo: ## the datastore and smoke without cgo: sqlite is another then
	CGO_ENABLED=0 $(TEST) -trimpath -count=1 ./internal/datastore/...
	$(NOCGO) -o $(BIN)/nocgo/gardenlite ./cmd/gardenlite
	GARDENLITE_BINARY=$(CURDIR)/$(BIN)/nocgo/gardenlite $(TEST) -count=1 -ldflags '-s -w' -timeout 10m ./e2e/smoke

race: ## units that do not link Kubernetes, and a landscape with a Shoot and a Bastion, with the race detector
	$(call check_tests,race) -race -timeout 20m $(RACE_UNIT_TESTS) $(RACE_TEST)
	$(TEST) -run 'TestSecondKeyExchange$$' ./internal/bastionsim/machine/sshd # x/crypto/ssh has a race in it
	$(TEST) -count=1 -run PageInBrowser -artifacts -outputdir $(CURDIR)/artifacts ./internal/authz/webhook # the screenshot

servers:
	$(call check_tests,servers) -p 1 -timeout 15m $(SERVER_TESTS)

# With the percentage of garbage that suits a laptop, collecting it takes a third of the time of the end-to-end tests.
E2E_ENV := GOGC=200 GARDENLITE_BINARY=$(CURDIR)/$(BIN)/gardenlite
E2E := $(E2E_ENV) $(TEST) -count=1
E2E_TESTS = $(filter-out %/e2e/smoke,$(shell $(GO) list ./e2e/...))

e2e: build $(BIN)/kubectl ## the suite against the real binary
	$(call check_tests,e2e,$(E2E_ENV)) -count=1 -parallel 3 -timeout 60m $(E2E_TESTS)

# Before a release: kills by the dozen, long fuzzing, external datastores, an older landscape, a published extension, conformance.
SOAK := GARDENLITE_SOAK=1 $(E2E) -tags soak -timeout 160m

soak: soak-units soak-fuzz soak-servers soak-kill soak-datastores soak-upgrade soak-extension soak-e2e smoke-nocgo soak-release conformance conformance-shoot ## all of these, for hours

soak-units: ## the units, with the race detector and the long forms
	GARDENLITE_SOAK=1 $(TEST) -race -count=1 -timeout 80m $(UNIT_TESTS)

soak-fuzz:
	$(TEST) -run '^$$' -fuzz '^FuzzHandshake$$' -fuzztime 5m -fuzzminimizetime 10x ./internal/bastionsim/machine/sshd
	$(TEST) -run '^$$' -fuzz '^FuzzMessages$$' -fuzztime 5m -fuzzminimizetime 10x ./internal/bastionsim/machine/sshd
	$(TEST) -run '^$$' -fuzz '^FuzzRead$$' -fuzztime 5m -fuzzminimizetime 10x ./internal/garden/stacks/stackpackage
	$(TEST) -run '^$$' -fuzz '^FuzzFiles$$' -fuzztime 5m -fuzzminimizetime 10x ./internal/garden/stacks/stackpackage

soak-servers:
	GARDENLITE_SOAK=1 $(TEST) -count=1 -p 1 -timeout 80m $(SERVER_TESTS)

soak-kill: build $(BIN)/kubectl ## kills at random moments
	$(SOAK) -parallel 2 -run '^TestKilled' ./e2e ./e2e/stacks

soak-datastores: build $(BIN)/kubectl ## etcd and PostgreSQL, and two processes with one of them
	$(SOAK) -p 1 -run '^TestDatastores' ./internal/datastore ./internal/controlplane ./internal/seed/seedhost ./e2e

soak-upgrade: build $(BIN)/kubectl ## a landscape of an older binary
	@if git cat-file -e '$(OLDER)^{commit}' 2>/dev/null; then $(MAKE) $(BIN)/older && $(SOAK) -run '^TestUpgrade' ./e2e; \
	  else echo "left out: this clone has no commit $(OLDER), whose landscapes the binary has to open"; fi

soak-extension: build $(BIN)/kubectl ## published extensions of Gardener
	$(SOAK) -run '^Test(SUSECHost|RegistryCache)' ./e2e

soak-release: $(BIN)/kubectl ## the First steps of the README with an archive of release-check
	$(SOAK) -run '^TestRelease' ./e2e/smoke

soak-e2e: build $(BIN)/kubectl ## the long forms of the suite
	$(SOAK) -p 1 -shuffle on -skip '^Test(Killed|Datastores|Upgrade|SUSECHost|RegistryCache)' $(E2E_TESTS)

# The commit whose landscapes the binary has to open.
OLDER := 0acbda5d

$(BIN)/older:
	src=$$(mktemp -d) && trap 'rm -rf "$$src"' EXIT && git archive $(OLDER) | tar -x -C "$$src" && \
	  (cd "$$src" && $(GO) build -ldflags '-s -w' -o $(CURDIR)/$@ ./cmd/gardenlite)

# The parts of conformance, and the folder with a file of figures of each.
CONFORMANCE := api authorizer suites programs gardenctl
FIGURES := $(CURDIR)/artifacts/conformance

conformance: ## all of these one after another, also after one that fails, and a table of their figures
	@rm -rf $(FIGURES) && mkdir -p $(FIGURES); failed=; \
	for part in $(CONFORMANCE); do \
	  if $(MAKE) conformance-$$part; then state=passed; else state=FAILED; failed=1; fi; \
	  figures=$$(cat $(FIGURES)/$$part 2>/dev/null || echo 'it did not run'); \
	  case $$figures in 'left out'*) state=-;; esac; \
	  printf '%-12s%-8s%s\n' $$part $$state "$$figures" >>$(FIGURES)/table; \
	done; \
	cat $(FIGURES)/table; test -z "$$failed"

# The tests of a part, which write its figures.
conformance_tests = mkdir -p $(FIGURES) && rm -f $(FIGURES)/$(1) && cd conformance && \
  CONFORMANCE_RESULT=$(FIGURES)/$(1) $(GO) test -vet=off -count=1 -v

conformance-api: build $(BIN)/baseline ## the same requests to Gardener's own garden and to this one
	$(call conformance_tests,api) ./api -args -gardenlite $(CURDIR)/$(BIN)/gardenlite -baseline $(CURDIR)/$(BIN)/baseline

conformance-authorizer: build ## the same requests to Gardener's SeedAuthorizer and to this one
	$(call conformance_tests,authorizer) -timeout 20m ./authorizer -args -gardenlite $(CURDIR)/$(BIN)/gardenlite

conformance-suites: build ## Gardener's integration tests against bare gardens; SUITES=name of some
	$(call conformance_tests,suites) -timeout 90m -parallel 2 ./suites -args -gardenlite $(CURDIR)/$(BIN)/gardenlite -suites '$(SUITES)'

conformance-programs: build $(BIN)/kubectl $(BIN)/gardener $(BIN)/extensions ## Gardener's programs, each in place of gardenlite's, and their page in docs
	$(call conformance_tests,programs) -timeout 60m ./programs -args -gardenlite $(CURDIR)/$(BIN)/gardenlite -gardener $(CURDIR)/$(BIN)/gardener \
	  -extensions $(CURDIR)/$(BIN)/extensions
	PATH=$(CURDIR)/$(BIN)/gardener:$$PATH $(E2E) -v -run '^TestPages$$/^develop-gardener$$' ./e2e/pages

# The programs themselves are not on the module proxy.
conformance-gardenctl: build $(BIN)/kubectl ## gardenctl and kubectl-gardenlogin, which have to be in PATH, with what a user does
	@if command -v gardenctl >/dev/null && command -v kubectl-gardenlogin >/dev/null; then $(call conformance_tests,gardenctl) -timeout 20m ./gardenctl -args \
	    -gardenlite $(CURDIR)/$(BIN)/gardenlite -kubectl $(CURDIR)/$(BIN)/kubectl; \
	  else mkdir -p $(FIGURES) && echo "left out: gardenctl or kubectl-gardenlogin is not in PATH" | tee $(FIGURES)/gardenctl; fi

GARDENER_PROGRAMS := gardenlet gardener-controller-manager gardener-scheduler gardener-resource-manager

$(BIN)/gardener: conformance/go.mod
	mkdir -p $@
	cd conformance && version=$$($(GO) list -m -f '{{.Version}}' github.com/gardener/gardener) && \
	  $(GO) build -ldflags "-X k8s.io/component-base/version.gitVersion=$$version" -o ../$@/ $(addprefix github.com/gardener/gardener/cmd/,$(GARDENER_PROGRAMS))

$(BIN)/extensions: hack/os-suse-chost/go.mod hack/registry-cache/go.mod
	mkdir -p $@
	for name in os-suse-chost registry-cache; do \
	  (cd hack/$$name && $(GO) build -ldflags '-s -w' -o ../../$@/ github.com/gardener/gardener-extension-$$name/cmd/gardener-extension-$$name) || exit 1; done

conformance-shoot: build $(BIN)/kubectl $(BIN)/e2e.test ## the conformance tests of Kubernetes that need no container runtime; FOCUS=name of some
	hack/conformance/run.sh $(BIN)/gardenlite $(BIN)/kubectl $(BIN)/e2e.test '$(FOCUS)'

$(BIN)/e2e.test: hack/conformance/go.mod
	cd hack/conformance && $(GO) test -c -ldflags '-s -w' -o ../../$@ k8s.io/kubernetes/test/e2e

$(BIN)/kubectl: hack/kubectl/go.mod
	cd hack/kubectl && version=$$($(GO) list -m -f '{{.Version}}' k8s.io/kubernetes) && \
	  $(GO) build -ldflags "-X k8s.io/component-base/version.gitVersion=$$version" -o ../../$@ k8s.io/kubernetes/cmd/kubectl

$(BIN)/baseline: bench/go.mod
	mkdir -p $@
	cd bench && version=$$($(GO) list -m -f '{{.Version}}' k8s.io/kubernetes) && \
	  $(GO) build -ldflags "-X k8s.io/component-base/version.gitVersion=$$version" -o ../$@/kube-apiserver k8s.io/kubernetes/cmd/kube-apiserver
	cd bench && $(GO) build -o ../$@/gardener-apiserver github.com/gardener/gardener/cmd/gardener-apiserver
	cd bench && $(GO) build -o ../$@/gardener-admission-controller github.com/gardener/gardener/cmd/gardener-admission-controller
	cd bench && $(GO) build -o ../$@/etcd go.etcd.io/etcd/server/v3
	cd bench && $(GO) build -o ../$@/kwok sigs.k8s.io/kwok/cmd/kwok

bench: bench-up bench-shoot bench-kubeconfig bench-bastion bench-scale bench-workloads bench-stacks bench-snapshot bench-clock bench-authz ## every benchmark

bench-up: build $(BIN)/baseline ## start, memory and rest, with a seed and without, beside the three servers of a garden
	cd bench && $(GO) run ./up -gardenlite $(CURDIR)/$(BIN)/gardenlite -baseline $(CURDIR)/$(BIN)/baseline

bench-shoot: build $(BIN)/baseline ## a first shoot, and what running and hibernated ones cost
	cd bench && $(GO) run ./shoot -gardenlite $(CURDIR)/$(BIN)/gardenlite -baseline $(CURDIR)/$(BIN)/baseline

bench-kubeconfig: build $(BIN)/baseline ## a kubeconfig of a shoot, beside what a bare kube-apiserver answers, and 500 at once
	cd bench && $(GO) run ./kubeconfig -gardenlite $(CURDIR)/$(BIN)/gardenlite -baseline $(CURDIR)/$(BIN)/baseline

bench-bastion: build ## bastions, beside ConfigMaps and plain SSH servers
	cd bench && $(GO) run ./bastion -gardenlite $(CURDIR)/$(BIN)/gardenlite

bench-scale: build ## 5,000 Shoots and 50,000 Secrets
	cd bench && $(GO) run ./scale -gardenlite $(CURDIR)/$(BIN)/gardenlite

bench-workloads: build $(BIN)/baseline ## 100 and 5,000 Pods in a Shoot, beside KWOK's controller with a bare kube-apiserver
	cd bench && $(GO) run ./workloads -gardenlite $(CURDIR)/$(BIN)/gardenlite -baseline $(CURDIR)/$(BIN)/baseline

bench-stacks: build ## installing a stack, beside a Deployment, and 100 stacks that are idle
	$(GO) build -o $(BIN)/ ./examples/stacks/mysql ./examples/stacks/wordpress
	cd bench && $(GO) run ./stacks -gardenlite $(CURDIR)/$(BIN)/gardenlite -programs $(CURDIR)/$(BIN) -packages $(CURDIR)/manifests/stacks

bench-snapshot: build ## saving and restoring 20 Shoots, beside a warm start and a copy of the folder
	cd bench && $(GO) run ./snapshot -gardenlite $(CURDIR)/$(BIN)/gardenlite

bench-clock: build ## advancing the clock of five Shoots by a day, beside the reconciliations of a day
	cd bench && $(GO) run ./clock -gardenlite $(CURDIR)/$(BIN)/gardenlite

bench-authz: build ## the resource dependency graph, and both webhooks beside the requests of ordinary users
	$(GO) test -run '^$$' -bench . ./internal/authz/graph
	cd bench && $(GO) run ./access -gardenlite $(CURDIR)/$(BIN)/gardenlite

generate: ## generated code
	./hack/generate-openapi.sh
	./hack/generate-crds.sh

verify-generate: generate ## fails if generated code is not what generate makes
	git diff --exit-code -- '*zz_generated*'

format: ## gofmt
	@unformatted=$$(gofmt -l $$(git ls-files '*.go' | grep -v zz_generated)); \
	  if [ -n "$$unformatted" ]; then echo "not formatted:"; echo "$$unformatted"; exit 1; fi

vet:
	$(GO) vet -tags soak ./...

# SA1019: the API that is served has deprecated fields, and they are served as well.
staticcheck:
	$(GO) tool -modfile=hack/tools/go.mod staticcheck -tags soak -checks inherit,-SA1019 ./...

GORELEASER := $(GO) tool -modfile=hack/release/go.mod goreleaser

release-check: ## a release of this commit in dist, not published and without the image, which needs Docker; an hour on two cores
	$(GO) tool -modfile=hack/tools/go.mod actionlint
	$(GORELEASER) release --snapshot --clean --parallelism 1 --skip docker,publish

release: ## publishes the release of a tag; .github/workflows/release.yml runs it
	$(GORELEASER) release --clean

release-pages: ## completions and manual pages, for archives and packages
	rm -rf $(BIN)/release && mkdir -p $(BIN)/release/completions
	$(NOCGO) -o $(BIN)/release/gardenlite ./cmd/gardenlite
	cd $(BIN)/release && ./gardenlite completion zsh >completions/_gardenlite && ./gardenlite man man
	for shell in bash fish; do $(BIN)/release/gardenlite completion $$shell >$(BIN)/release/completions/gardenlite.$$shell || exit 1; done

clean:
	rm -rf $(BIN) dist
