# `make run` and `make test` are all a fresh Debian 12 needs; both first install what is missing of packages.txt.

jobs ?= $(shell nproc)
sluice := build/release/src/sluice
configure := cmake --preset release -DSLUICE_PARITY=ON

.PHONY: run test lint tsan soak fuzz packages release dev clean

# Builds the program and chats with a demo model, after a first question to show how.
run: packages
	$(configure) && cmake --build --preset release --target sluice
	$(sluice) run -p "What is 17 + 25?"
	$(sluice) run

# Everything without sanitizers, llama.cpp as the judge included; then all but that under ASan and UBSan.
test: release dev
	ctest --preset release -j $(jobs)
	ctest --preset dev -j $(jobs)

# Threads under TSan.
tsan: packages
	cmake --preset tsan && cmake --build --preset tsan
	ctest --preset tsan -j $(jobs) -R '^(unit_base|unit_backend|unit_engine|model_tests)'

# 200 requests in half an hour on the RAM device: memory must stay flat.
soak: packages
	$(configure) && cmake --build --preset release --target soak
	build/release/tests/soak models/demo-attn.gguf 1800 200

# clang-format, clang-tidy, and clang's own warnings.
lint: release
	tools/lint build/release
	cmake --preset fuzz && cmake --build --preset fuzz

# Each fuzzer for `seconds`; what they find belongs into tests/fuzz/corpus.
seconds ?= 600
fuzz: packages
	cmake --preset fuzz && cmake --build --preset fuzz
	tests/fuzz/run.sh build/fuzz/tests/fuzz $(seconds)

release: packages
	$(configure) && cmake --build --preset release
dev: packages
	cmake --preset dev && cmake --build --preset dev
packages:
	@tools/install-packages
clean:
	rm -rf build
