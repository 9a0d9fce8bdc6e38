#!/usr/bin/env python3
"""The pages for people: every flag of the program is described, every link and every named source file exists, prose is
wrapped, the promises of placement stand in the same words in the README, docs/placement.md and the program's help, and
the clients that are tried are named.

    docs_test.py SLUICE
"""
# SPDX-License-Identifier: Apache-2.0
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COLUMNS = 120
# Flags that several commands share stand on these pages.
SHARED = {
    "run": ["model", "placement"],
    "serve": ["model", "placement"],
    "plan": ["model", "placement"],
    "bench": ["model", "placement"],
    "logits": ["model", "placement"],
    "perplexity": ["model", "placement"],
}


# Commands without flags of their own; the README names them.
SMALL = {"help", "version"}


def help_of(sluice, *command):
    return subprocess.run([sluice, *command, "--help"], capture_output=True, text=True, check=True).stdout


def commands_of(help_text):
    return re.findall(r"^  (\w+) {2,}\S", help_text.split("Subcommands:")[1], re.MULTILINE)


def flags_of(help_text):
    """The long names at the beginning of a line: the others are in descriptions."""
    names = re.findall(r"^  (-[^\s:]*)", help_text, re.MULTILINE)
    flags = {flag for name in names for flag in name.split(",") if flag.startswith("--")}
    return sorted(flags - {"--help"})


def missing_flags(sluice):
    for command in commands_of(help_of(sluice)):
        if command in SMALL:
            continue
        page = ROOT / "docs" / f"{command}.md"
        if not page.exists():
            yield f"docs/{command}.md is missing"
            continue
        text = "".join((ROOT / "docs" / f"{name}.md").read_text() for name in [command, *SHARED.get(command, [])])
        for flag in flags_of(help_of(sluice, command)):
            if f"`{flag}`" not in text:
                yield f"docs/{command}.md says nothing of {flag}"


def pages():
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True)
    names = listed.stdout.split() if listed.returncode == 0 else []
    return [ROOT / name for name in names] or [p for p in ROOT.rglob("*.md") if "build" not in p.parts]


def broken_links():
    for page in pages():
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
            if "://" not in target and not (page.parent / target).exists():
                yield f"{page.relative_to(ROOT)}: there is no {target}"


def missing_sources():
    """`engine/step/stepper` in a page about the code names a folder of src/, or a file without its ending."""
    rooms = "|".join(sorted(p.name for p in (ROOT / "src").iterdir() if p.is_dir()))
    for page in (ROOT / "docs/ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", ROOT / "src/policy/README.md"):
        for name in re.findall(rf"`((?:{rooms})/[\w/.]*)`", page.read_text()):
            if not any((ROOT / f"src/{name}{ending}").exists() for ending in ("", ".h", ".cpp")):
                yield f"{page.relative_to(ROOT)}: there is no src/{name}"


def long_lines():
    for page in pages():
        in_code = False
        for number, line in enumerate(page.read_text().splitlines(), 1):
            in_code ^= line.startswith("```")
            is_prose = not (in_code or line.startswith(("|", "    ")) or "](" in line)
            if is_prose and len(line) > COLUMNS:
                yield f"{page.relative_to(ROOT)}:{number}: {len(line)} columns; prose is wrapped at {COLUMNS}"


def words(text):
    return " ".join(text.split())


def other_promises(sluice):
    help_text = help_of(sluice)
    begin = help_text.find("For the same trunk")
    if begin < 0:
        yield "sluice --help does not state the promises of placement"
        return
    promises = words(help_text[begin:])
    for page in ("README.md", "docs/placement.md"):
        if promises not in words((ROOT / page).read_text()):
            yield f"{page} states the promises of placement in other words than sluice --help:\n  {promises}"


def other_flags(sluice):
    """docs/flags.md holds the tables that the program has, as `sluice help flags` prints them."""
    tables = subprocess.run([sluice, "help", "flags"], capture_output=True, text=True, check=True).stdout
    if tables not in (ROOT / "docs/flags.md").read_text():
        yield "docs/flags.md: the tables are not those of `sluice help flags`; put them in"


def other_clients():
    """docs/serve.md names the clients of tests/clients, at the versions that are tried."""
    tried = json.loads((ROOT / "tests/clients/package.json").read_text())["dependencies"]
    text = (ROOT / "docs/serve.md").read_text()
    for name, version in tried.items():
        if not name.startswith(("ajv", "zod")) and f"`{name}` {version}" not in text:
            yield f"docs/serve.md does not name `{name}` {version}, which tests/clients tries"


def main():
    sluice = sys.argv[1]
    problems = [*other_flags(sluice), *missing_flags(sluice), *broken_links(), *missing_sources(), *long_lines(), *other_promises(sluice),
                *other_clients()]
    for problem in problems:
        print(problem)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
