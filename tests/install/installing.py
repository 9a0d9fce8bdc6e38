"""What the tests of the installed tree share: an environment without the source tree in it, and programs run in it."""
# SPDX-License-Identifier: Apache-2.0
import os
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PATIENCE = 600  # seconds, against hanging
QUESTION = "What is 17 + 25?"
ANSWER = "17 + 25 = 42."


def run(*command, env=None, ok=True, cwd="/"):
    """A program's output, both streams; with ok=None a failing one is no fault."""
    plain = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=cwd,
                          stdin=subprocess.DEVNULL, env={**plain, **(env or {})}, timeout=PATIENCE)
    if ok and done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}")
    return done.stdout if ok else done


def install(build, prefix):
    run("cmake", "--install", build, "--prefix", prefix)


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            print(f"SKIPPED: there is no {program}")
            sys.exit(77)


def main():
    unittest.main(argv=sys.argv[:1], verbosity=2)
