# The front door. `make` builds build/shoal; `make help` lists the rest.
BUILD        ?= build
FUZZ_SECONDS ?= 600
SHELL         = /bin/bash
.SHELLFLAGS   = -o pipefail -c

.DEFAULT_GOAL := all
.PHONY: all deps run test sim chaos interop bench sanitize arm64 fuzz format clean help

help: ## this list
	@sed -n 's/^\([a-z0-9]*\):.*## /  make \1\t/p' Makefile

deps: ## install every Debian package that the targets below use
	@tools/deps build test sanitize interop bench arm64

all: ## build/shoal
	@tools/deps build
	@test -e $(BUILD)/shoal || echo 'building $(BUILD)/shoal, which takes some minutes the first time'
	@tools/configure $(BUILD)
	@# On a terminal a line that is drawn over itself says how far it is; elsewhere only what goes wrong is told.
	@if [ -t 1 ]; then NINJA_STATUS='[%p] ' ninja -C $(BUILD) shoal; \
	 else ninja -C $(BUILD) --quiet shoal | sed '/no work to do/d'; fi
	@echo '$(BUILD)/shoal is ready'

run: all ## train LeNet-5 on Fashion-MNIST
	@mkdir -p runs
	$(BUILD)/shoal train examples/lenet5.net --data fashion-mnist --out runs/lenet5.safetensors

test: ## build everything and run the tests
	@tools/deps build test
	@tools/check $(BUILD)

sim: all ## ten thousand trainings of simulated machines full of faults
	@$(BUILD)/shoal sim --seeds 10000

interop: all ## compare with PyTorch and other programs; needs PyPI
	@tools/deps interop
	@tools/interop $(BUILD)

bench: all ## measure beside PyTorch, TensorFlow and JAX, write docs/benchmarks.md; needs PyPI
	@tools/deps bench
	@bench/run $(BUILD)

sanitize: ## the tests with clang, then under the address, undefined and thread sanitizers
	@tools/deps build test sanitize
	@CC=clang tools/check $(BUILD)/clang
	@tools/check $(BUILD)/asan -DSHOAL_SANITIZE=address,undefined
	@tools/check $(BUILD)/tsan -DSHOAL_SANITIZE=thread

chaos: all ## train with six processes, kill 20 of them on the way, compare the weights
	@rm -rf $(BUILD)/chaos && mkdir -p $(BUILD)/chaos
	@cd $(BUILD)/chaos && $(CURDIR)/tools/chaos $(abspath $(BUILD))/shoal $(CURDIR)/examples/lenet5.net fashion-mnist 20 0.7 --epochs 2 --seed 1

arm64: all ## build for ARM64, run its tests under emulation, compare trained weights
	@tools/deps build test arm64
	@tools/arm64 $(BUILD)

fuzz: ## run every fuzz target for FUZZ_SECONDS
	@tools/deps build sanitize
	@tools/fuzz $(BUILD)/fuzz $(FUZZ_SECONDS)

format: ## lay out the C files with clang-format
	@tools/format

clean: ## remove what was built
	@rm -rf $(BUILD)
