# `make run` and `make test` are all a fresh Debian 12 needs; both first install what is missing of packages.txt.

jobs ?= $(shell nproc)
sluice := build/release/src/sluice

.PHONY: run test lint tsan fuzz packages release dev clean

# Builds, writes a small random model, shows what is in it, and computes with it.
run: release
	$(sluice) synth build/small.gguf
	$(sluice) inspect build/small.gguf
	$(sluice) run -m build/small.gguf --tokens 83,108,117,105,99,101 -n 16

# Everything without sanitizers, llama.cpp as the judge included; then all but that under ASan and UBSan.
test: release dev
	ctest --preset release -j $(jobs)
	ctest --preset dev -j $(jobs)

# Threads under TSan.
tsan: packages
	cmake --preset tsan && cmake --build --preset tsan
	ctest --preset tsan -j $(jobs) -R '^(unit_base|unit_backend|unit_engine|model_tests)'

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
	cmake --preset release -DSLUICE_PARITY=ON && cmake --build --preset release
dev: packages
	cmake --preset dev && cmake --build --preset dev
packages:
	@tools/install-packages
clean:
	rm -rf build
