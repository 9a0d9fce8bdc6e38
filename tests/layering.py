#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails on any #include that goes against the layers, and names file, line and rule.

layering.py [root] checks src/, include/ and examples/ of the repository; layering.py --self-test shows that every
rule can fail. It reads single lines, not C++: an #include made by a macro, or by a generated file, it does not see.
"""

import pathlib
import re
import sys
import tempfile

# Includes go downwards only; folders of one level do not see each other.
LEVELS = [["base"], ["quant"], ["gguf", "text", "policy", "backend", "sampler"], ["model", "hub"], ["model_file"],
          ["engine"], ["chat"], ["server", "c_api"], ["cli"]]
LEVEL = {folder: i for i, folders in enumerate(LEVELS) for folder in folders}
CLI_SEES = {"sluice", "base", "cli", "gguf", "quant", "text", "sampler", "policy", "model",
            "model_file", "chat", "hub"}
CHAT_SEES = {"sluice", "base", "chat", "gguf", "text", "sampler", "model_file"}  # of engine what sluice/ shows

C_API_SEES = {"sluice", "base", "chat", "c_api"}  # the same, for C

# Of engine the command line sees one header: a plan speaks in policy's terms, which the public headers do not have.
CLI_SEES_OF_ENGINE = "engine/machine/session_plan.h"

CLI_SEES_OF_SERVER = "server/server.h"

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
CUDA = re.compile(r"cuda|cublas|curand|cooperative_groups|cub/|thrust/|nvml|nvtx|mma\.h")
THIRD_PARTY = re.compile(r"(CLI|nlohmann)/|pcre2")
CURL = re.compile(r"curl/")
BOOST = re.compile(r"boost/")
GETENV = re.compile(r"\bgetenv\s*\(")
NOT_IN_POLICY = {"thread", "chrono", "fstream", "mutex", "atomic"}


def broken_rule(path, quote, target):
    """The rule that `#include` of target, in <> or "", breaks in `path` (relative to the root), or None."""
    parts, seen = path.split("/"), target.split("/")[0]
    folder = parts[1]
    if parts[0] in ("include", "examples"):
        allowed = seen == "sluice" or re.fullmatch(r"[a-z_]+|std[a-z]+\.h", target)
        return None if allowed else "public headers and examples include the standard library alone"
    if CUDA.match(target) and not path.startswith("src/backend/cuda/"):
        return "CUDA headers belong to src/backend/cuda"
    if THIRD_PARTY.match(target) and folder not in ("text", "cli", "server", "hub"):
        return "third-party headers belong to src/text, src/cli, src/server and src/hub"
    if CURL.match(target) and folder != "hub":
        return "libcurl belongs to src/hub"
    if BOOST.match(target) and not path.startswith("src/server/http/"):
        return "Boost belongs to src/server/http"
    if folder == "policy" and target in NOT_IN_POLICY:
        return "policy has no threads, clock or files"
    if seen not in LEVEL and seen != "sluice":
        return "our headers are named from a folder of src/" if quote == '"' else None
    if folder not in LEVEL:
        return f"no layer is called {folder}"
    if folder == "cli":
        if target in (CLI_SEES_OF_ENGINE, CLI_SEES_OF_SERVER):
            return None
        return None if seen in CLI_SEES else f"cli sees {', '.join(sorted(CLI_SEES))}"
    if folder == "chat":
        return None if seen in CHAT_SEES else f"chat sees {', '.join(sorted(CHAT_SEES))}"
    if folder == "c_api":
        return None if seen in C_API_SEES else f"c_api sees {', '.join(sorted(C_API_SEES))}"
    if seen == folder:
        return None
    if seen == "hub":
        return "cli alone sees hub: nothing else reaches the network"
    if folder == "policy":
        return None if seen == "base" else "policy sees base alone"
    if seen == "sluice":
        return None
    if LEVEL[seen] >= LEVEL[folder]:
        return f"{folder} may not see {seen}"
    if folder == "model" and seen in ("policy", "text", "sampler"):
        return f"model is math alone: it sees no {seen}"
    if folder == "model" and seen == "backend" and target.count("/") > 1:
        return "model sees of backend only the headers directly in src/backend"
    if folder == "engine" and target.startswith(("backend/ram/", "backend/cuda/")):
        return "engine knows no device by name: it sees of backend the seam and cpu"
    if folder == "server" and seen == "engine" and target != "engine/engine.h":
        return "server sees of engine only engine/engine.h"
    return None


def check(root):
    """["file:line: rule: text"] for all that is wrong under root, and the number of files read."""
    found, n_files = [], 0
    for file in sorted(f for top in ("src", "include", "examples") for f in root.glob(f"{top}/**/*")):
        if file.suffix not in (".h", ".c", ".cpp", ".cu", ".cuh"):
            continue
        n_files += 1
        path = file.relative_to(root).as_posix()
        for number, line in enumerate(file.read_text().splitlines(), 1):
            include = INCLUDE.match(line)
            rule = broken_rule(path, include[1], include[2]) if include else None
            if GETENV.search(line.split("//")[0]) and not path.startswith("src/cli/"):
                rule = "the environment is read in src/cli alone"
            if rule:
                found.append(f"{path}:{number}: {rule}: {line.strip()}")
    if n_files == 0:
        found.append(f"{root}: no sources under src/ and include/")
    return found, n_files


FORBIDDEN = [
    ("src/base/a.h", '#include "quant/type.h"'),
    ("src/base/d.h", '#include "units.h"'),
    ("src/base/e.h", '#include "../quant/type.h"'),
    ("src/extra/a.h", '#include "base/units.h"'),
    ("src/gguf/a.cpp", '#include "text/tokenizer/tokenizer.h"'),
    ("src/quant/a.cpp", '#  include <engine/engine.h>'),
    ("src/backend/cpu/a.cpp", '#include "model/config.h"'),
    ("src/policy/a.h", '#include "quant/type.h"'),
    ("src/policy/b.h", '#include "sluice/sluice.h"'),
    ("src/policy/d.h", '#include "backend/ops.h"'),
    ("src/policy/e.h", '#include "model/config.h"'),
    ("src/backend/cpu/c.cpp", '#include "policy/plan/pricing.h"'),
    ("src/model/architectures/a.cpp", '#include "policy/plan/pricing.h"'),
    *(("src/policy/c.cpp", f"#include <{name}>") for name in sorted(NOT_IN_POLICY)),
    ("src/model/a.cpp", '#include "backend/cpu/ops.h"'),
    ("src/model/b.cpp", '#include "backend/cuda/ops.h"'),
    ("src/model/c.h", '#include "policy/plan/pricing.h"'),
    ("src/model/d.h", '#include "text/tokenizer/tokenizer.h"'),
    ("src/model/e.h", '#include "sampler/options.h"'),
    ("src/model/f.h", '#include "model_file/synth.h"'),
    ("src/model_file/a.h", '#include "engine/session.h"'),
    ("src/engine/c.h", '#include "chat/answer.h"'),
    ("src/engine/device/d.cpp", '#include "backend/ram/ram_device.h"'),
    ("src/engine/machine/e.cpp", '#include "backend/cuda/attend.h"'),
    ("src/chat/a.h", '#include "cli/run/answer_printer.h"'),
    ("src/chat/b.h", '#include "engine/step/stepper.h"'),
    ("src/chat/c.h", '#include "policy/plan/planner.h"'),
    ("src/chat/d.h", "#include <nlohmann/json.hpp>"),
    ("src/c_api/a.cpp", '#include "engine/session.h"'),
    ("src/chat/e.h", '#include "c_api/guard.h"'),
    ("src/cli/g.cpp", '#include "c_api/guard.h"'),
    ("examples/b.c", "#include <unistd.h>"),
    ("src/server/a.cpp", '#include "engine/session.h"'),
    ("src/server/b.cpp", '#include "cli/main.h"'),
    ("src/server/d.cpp", '#include "hub/hub.h"'),
    ("src/chat/e.cpp", '#include "hub/hub.h"'),
    ("src/engine/f.cpp", '#include "hub/ranges.h"'),
    ("src/hub/a.cpp", '#include "model/config.h"'),
    ("src/hub/b.cpp", '#include "chat/answer.h"'),
    ("src/cli/e.cpp", "#include <curl/curl.h>"),
    ("src/cli/a.cpp", '#include "engine/engine.h"'),
    ("src/cli/d.cpp", '#include "engine/machine/machine_record.h"'),
    ("src/cli/b.cpp", '#include "backend/ops.h"'),
    ("src/cli/c.cpp", '#include "server/router.h"'),
    ("src/server/c.cpp", "#include <boost/beast.hpp>"),
    ("src/engine/a.cpp", "#include <cuda_runtime.h>"),
    ("src/backend/cpu/b.cpp", "#include <cublas_v2.h>"),
    ("src/backend/a.h", "#include <cuda/atomic>"),
    ("src/backend/none/a.cpp", "#include <cooperative_groups.h>"),
    ("src/engine/b.cpp", "#include <nlohmann/json.hpp>"),
    ("src/base/b.cpp", "#include <CLI/CLI.hpp>"),
    ("src/model/b.cpp", "#include <pcre2.h>"),
    ("src/base/c.cpp", 'const char* home = std::getenv("HOME");'),
    ("include/sluice/a.h", '#include "base/error.h"'),
    ("examples/a.cpp", '#include "chat/dialogue.h"'),
    ("include/sluice/b.h", "#include <unistd.h>"),
]
ALLOWED = [
    ("src/base/a.h", "#include <thread>"),
    ("src/base/b.h", '#include "sluice/error.h"'),
    ("src/base/c.h", "// #include <cuda.h>, and getenv() is for cli alone"),
    ("src/quant/a.h", '#include "quant/type.h"'),
    ("src/policy/a.h", '#include "base/ids.h"'),
    ("src/backend/cuda/a.cu", "#include <cuda_fp16.h>"),
    ("src/model/a.cpp", '#include "backend/ops.h"'),
    ("src/engine/a.cpp", '#include "backend/cpu/ops.h"'),
    ("src/model_file/a.cpp", '#include "policy/plan/pricing.h"'),
    ("src/engine/b.cpp", '#include "policy/plan/planner.h"'),
    ("src/chat/a.cpp", '#include "text/tokenizer/tokenizer.h"'),
    ("src/chat/b.cpp", '#include "model_file/tokenizer_data.h"'),
    ("src/chat/c.cpp", '#include "sluice/sluice.h"'),
    ("src/c_api/a.cpp", '#include "chat/text_model.h"'),
    ("include/sluice/c.h", "#include <stdint.h>"),
    ("src/server/a.cpp", '#include "engine/engine.h"'),
    ("src/server/b.cpp", "#include <nlohmann/json.hpp>"),
    ("src/server/http/a.cpp", "#include <boost/beast.hpp>"),
    ("src/hub/a.cpp", "#include <curl/curl.h>"),
    ("src/hub/b.cpp", '#include "gguf/parse.h"'),
    ("src/cli/g.cpp", '#include "hub/hub.h"'),
    ("src/cli/f.cpp", '#include "server/server.h"'),
    ("src/cli/a.cpp", '#include "sluice/sluice.h"'),
    ("src/cli/e.cpp", '#include "engine/machine/session_plan.h"'),
    ("src/cli/b.cpp", '#include "model/config.h"'),
    ("src/cli/d.cpp", '#include "text/tokenizer/tokenizer.h"'),
    ("src/text/a.cpp", "#include <pcre2.h>"),
    ("src/cli/c.cpp", 'const char* home = std::getenv("HOME");'),
    ("include/sluice/a.h", "#include <string_view>"),
    ("include/sluice/b.h", '#include "sluice/error.h"'),
    ("examples/a.cpp", '#include "sluice/chat.h"'),
]


def n_misjudged(cases, n_expected):
    """How many of the (file, line) pairs, each in a tree of its own, give another number of findings."""
    n = 0
    for path, line in cases:
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, path)
            file.parent.mkdir(parents=True)
            file.write_text(f"// A file.\n{line}\n")
            found, _ = check(pathlib.Path(folder))
        if len(found) != n_expected or not all(text.startswith(f"{path}:2: ") for text in found):
            print(f"layering: self-test: {path}: {line}: found {found}")
            n += 1
    return n


def main():
    if sys.argv[1:] == ["--self-test"]:
        missed, wrong = n_misjudged(FORBIDDEN, 1), n_misjudged(ALLOWED, 0)
        print(f"layering: self-test: {len(FORBIDDEN)} forbidden lines, {missed} missed; "
              f"{len(ALLOWED)} allowed lines, {wrong} refused")
        return int(missed + wrong > 0)
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent
    found, n_files = check(root)
    print("\n".join(found or [f"layering: {n_files} files, all includes go downwards"]))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
