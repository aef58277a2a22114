# What a developer types. Every target needs Go and nothing else that is not fetched by it.
GO ?= go
# lint runs all of vet once; each test would run a part of it again, also over what it imports.
TEST := $(GO) test -vet=off
BIN := bin
VERSION ?=
LDFLAGS := -s -w $(if $(VERSION),-X github.com/gardenlite/gardenlite/internal/version.version=$(VERSION))
# Packages whose tests start an API server each: one after another, and without the race detector.
SERVER_TESTS := ./internal/controlplane ./internal/controlplane/kubecontrollers ./internal/garden ./internal/landscape ./internal/node ./internal/node/programs ./internal/seed ./internal/seed/provider/clustertest ./internal/shootplane ./pkg/...
# One test of a whole landscape with the race detector.
RACE_TEST := ./internal/landscape/racetest
# All others, with the race detector.
UNIT_TESTS = $(filter-out $(shell $(GO) list $(SERVER_TESTS) $(RACE_TEST) ./e2e/...),$(shell $(GO) list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./...))

.PHONY: all build up test test-unit test-race test-servers e2e conformance-shoot soak bench bench-up bench-shoot bench-kubeconfig bench-bastion bench-scale bench-workloads bench-stacks bench-authz generate verify-generate lint clean

all: build

build: ## bin/gardenlite
	$(GO) build -ldflags '$(LDFLAGS)' -o $(BIN)/gardenlite ./cmd/gardenlite

up: build ## starts a landscape in the foreground
	$(BIN)/gardenlite up

test: lint verify-generate test-unit test-race test-servers e2e ## everything CI runs, but benchmarks

test-unit:
	$(TEST) -race -ldflags '-s -w' -timeout 20m $(UNIT_TESTS)
	$(TEST) -run 'TestSecondKeyExchange$$' ./internal/bastionsim/machine/sshd # x/crypto/ssh has a race in it
	mkdir -p artifacts
	$(TEST) -race -count=1 -run PageInBrowser -artifacts -outputdir $(CURDIR)/artifacts ./internal/authz/webhook # the screenshot

test-race: ## a landscape with a Shoot and a Bastion, from its start to its end
	$(TEST) -race -timeout 20m $(RACE_TEST)

test-servers:
	$(TEST) -p 1 -timeout 15m $(SERVER_TESTS)

# With the percentage of garbage that suits a laptop, collecting it takes a third of the time of the end-to-end tests.
E2E := GOGC=200 GARDENLITE_BINARY=$(CURDIR)/$(BIN)/gardenlite $(TEST) -count=1

# The commit whose landscapes the binary has to open.
OLDER := 4a127abe2023109168b23ed64d46021ee4941686

$(BIN)/older:
	src=$$(mktemp -d) && trap 'rm -rf "$$src"' EXIT && git archive $(OLDER) | tar -x -C "$$src" && \
	  (cd "$$src" && $(GO) build -ldflags '-s -w' -o $(CURDIR)/$@ ./cmd/gardenlite)

e2e: build $(BIN)/kubectl $(BIN)/older ## the suite against the real binary
	$(E2E) -parallel 3 -timeout 60m ./e2e/...

soak: build $(BIN)/kubectl $(BIN)/older ## the long forms: more kills, more objects, longer fuzzing
	GARDENLITE_SOAK=1 $(TEST) -race -count=1 -timeout 80m $(UNIT_TESTS)
	$(TEST) -run '^$$' -fuzz '^FuzzHandshake$$' -fuzztime 5m -fuzzminimizetime 10x ./internal/bastionsim/machine/sshd
	$(TEST) -run '^$$' -fuzz '^FuzzMessages$$' -fuzztime 5m -fuzzminimizetime 10x ./internal/bastionsim/machine/sshd
	$(TEST) -run '^$$' -fuzz '^FuzzRead$$' -fuzztime 5m -fuzzminimizetime 10x ./internal/garden/stacks/stackpackage
	$(TEST) -run '^$$' -fuzz '^FuzzFiles$$' -fuzztime 5m -fuzzminimizetime 10x ./internal/garden/stacks/stackpackage
	GARDENLITE_SOAK=1 $(TEST) -count=1 -p 1 -timeout 80m $(SERVER_TESTS)
	GARDENLITE_SOAK=1 $(E2E) -p 1 -shuffle on -timeout 160m ./e2e/...

conformance-shoot: build $(BIN)/kubectl $(BIN)/e2e.test ## the conformance tests of Kubernetes that need no container runtime; FOCUS=name of some
	hack/conformance/run.sh $(BIN)/gardenlite $(BIN)/kubectl $(BIN)/e2e.test '$(FOCUS)'

$(BIN)/e2e.test: hack/conformance/go.mod
	cd hack/conformance && $(GO) test -c -ldflags '-s -w' -o ../../$@ k8s.io/kubernetes/test/e2e

$(BIN)/kubectl: hack/kubectl/go.mod
	cd hack/kubectl && version=$$($(GO) list -m -f '{{.Version}}' k8s.io/kubernetes) && \
	  $(GO) build -ldflags "-X k8s.io/component-base/version.gitVersion=$$version" -o ../../$@ k8s.io/kubernetes/cmd/kubectl

$(BIN)/baseline: bench/go.mod
	mkdir -p $@
	cd bench && $(GO) build -o ../$@/kube-apiserver k8s.io/kubernetes/cmd/kube-apiserver
	cd bench && $(GO) build -o ../$@/etcd go.etcd.io/etcd/server/v3
	cd bench && $(GO) build -o ../$@/kwok sigs.k8s.io/kwok/cmd/kwok

bench: bench-up bench-shoot bench-kubeconfig bench-bastion bench-scale bench-workloads bench-stacks bench-authz ## every benchmark

bench-up: build $(BIN)/baseline ## cold and warm start, with a seed and without, beside a bare kube-apiserver with etcd
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

bench-authz: build ## the resource dependency graph, and both webhooks beside the requests of ordinary users
	$(GO) run ./hack/bench-authz; graph=$$?; \
	  cd bench && $(GO) run ./access -gardenlite $(CURDIR)/$(BIN)/gardenlite && exit $$graph

generate: ## generated code
	./hack/generate-openapi.sh
	./hack/generate-crds.sh

verify-generate: generate ## fails if generated code is not what generate makes
	git diff --exit-code -- '*zz_generated*'

# SA1019: the API that is served has deprecated fields, and they are served as well.
lint: ## gofmt, vet, staticcheck
	@unformatted=$$(gofmt -l $$(git ls-files '*.go' | grep -v zz_generated)); \
	  if [ -n "$$unformatted" ]; then echo "not formatted:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(GO) tool -modfile=hack/tools/go.mod staticcheck -checks inherit,-SA1019 ./...

clean:
	rm -rf $(BIN)
