# `make run` and `make test` are all a fresh Debian 12 needs. Each target first installs what it lacks (packages.txt).

jobs ?= $(shell nproc)
# With CUDA where there are a compiler for it and a card, for the cards in this machine alone; cuda= builds without.
cuda ?= $(shell command -v nvcc >/dev/null && nvidia-smi -L 2>/dev/null | grep -q GPU && echo native)
preset := $(if $(cuda),cuda,release)
sluice := build/$(preset)/src/sluice

.PHONY: run serve installable install deb test check lint tsan soak load fuzz clean

# Builds the program and chats with a demo model, after a first question to show how. Needs nothing of the tests.
run:
	@tools/install-packages run
	test -f build/$(preset)/build.ninja || cmake --preset $(preset) -DSLUICE_UNITY=ON -DSLUICE_TESTS=OFF -DSLUICE_PAGE=OFF \
		$(if $(cuda),-DCMAKE_CUDA_ARCHITECTURES=$(cuda))
	cmake --build --preset $(preset) --target sluice
	$(sluice) run -p "What is 17 + 25?"
	$(sluice) run

# Builds the program with its web page and starts the server with a demo model, at the address that it prints.
serve:
	@tools/install-packages run serve
	cmake --preset $(preset) -DSLUICE_PAGE=ON $(if $(cuda),-DCMAKE_CUDA_ARCHITECTURES=$(cuda)) \
		$(if $(wildcard build/$(preset)/build.ninja),,-DSLUICE_UNITY=ON -DSLUICE_TESTS=OFF)
	cmake --build --preset $(preset) --target sluice
	$(sluice) serve

# Program, libraries, headers, demo models and manual page below PREFIX (docs/install.md); the same as a .deb. In a tree
# that belongs to somebody else root builds nothing: `make installable && sudo make install` leaves no file of root's there.
PREFIX ?= /usr/local
prefix ?= $(PREFIX)
is_guest := $(shell test "$$(id -u)" -ne 0 || test "$$(stat -c %u .)" -eq 0 || echo yes)
installable:
	@tools/install-packages run serve
	cmake --preset $(preset) -DSLUICE_PAGE=ON $(if $(cuda),-DCMAKE_CUDA_ARCHITECTURES=$(cuda)) \
		$(if $(wildcard build/$(preset)/build.ninja),,-DSLUICE_UNITY=ON -DSLUICE_TESTS=OFF)
	cmake --build --preset $(preset) --target installable

install: $(if $(is_guest),,installable)
	DESTDIR="$(DESTDIR)" tools/install-built "$(prefix)" $(if $(is_guest),,build/$(preset))

deb: installable
	@tools/install-packages deb
	cd build/$(preset) && rm -f sluice_*.deb && cpack -G DEB

# The release build and every test, those against other people's programs included.
test:
	@tools/install-packages run serve test
	cmake --preset release -DSLUICE_UNITY=ON -DSLUICE_TESTS=ON -DSLUICE_PARITY=ON -DSLUICE_PAGE=ON
	cmake --build --preset release
	ctest --preset release -j $(jobs)

# The tests under ASan and UBSan, with the inputs that fuzzing has found, and lint of what changed since `base`
# (without one: since the branch left main, on main itself since the commit before).
base ?=
check:
	@tools/install-packages run test check
	tools/lint --changed $(base)
	cmake --preset dev && cmake --build --preset dev
	ctest --preset dev -j $(jobs)

# clang-format and clang-tidy over everything, and clang's own warnings.
lint:
	@tools/install-packages
	tools/lint
	cmake --preset fuzz && cmake --build --preset fuzz

# Threads under TSan.
tsan:
	@tools/install-packages run test
	cmake --preset tsan && cmake --build --preset tsan
	ctest --preset tsan -j $(jobs) -R '^(unit_base|unit_backend|unit_engine|unit_server|model_tests)'

# 200 requests in half an hour on the RAM device: memory must stay flat.
soak:
	@tools/install-packages run test
	cmake --preset release -DSLUICE_TESTS=ON && cmake --build --preset release --target soak
	build/release/tests/soak models/demo-attn.gguf 1800 200

# The server under 64 connections of good and bad requests for `seconds`: statuses, memory, and how quick /health is.
load: seconds = 300
load:
	@tools/install-packages run load
	test -f build/release/build.ninja || cmake --preset release -DSLUICE_UNITY=ON -DSLUICE_TESTS=OFF -DSLUICE_PAGE=OFF
	cmake --build --preset release --target sluice
	python3 bench/serve_load.py build/release/src/sluice $(seconds)

# Each fuzzer for `seconds`; what they find belongs into tests/fuzz/corpus.
seconds ?= 600
fuzz:
	@tools/install-packages run test fuzz
	cmake --preset fuzz && cmake --build --preset fuzz
	tests/fuzz/run.sh build/fuzz/tests/fuzz $(seconds)

clean:
	rm -rf build
