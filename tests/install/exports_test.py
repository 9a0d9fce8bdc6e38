#!/usr/bin/env python3
"""libsluice.so offers what the public headers promise, and nothing else.

    exports_test.py LIBSLUICE.SO
"""
# SPDX-License-Identifier: Apache-2.0
import re
import sys
import unittest
from pathlib import Path

import installing
from installing import ROOT, run

LIBRARY = Path(sys.argv[1]).resolve()
HEADERS = {path.name: path.read_text() for path in (ROOT / "include/sluice").glob("*.h")}
CPP = "".join(text for name, text in HEADERS.items() if name != "sluice_c.h")
NEEDED = {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "libstdc++.so.6", "libpcre2-8.so.0", "ld-linux-x86-64.so.2",
          "ld-linux-aarch64.so.1"}


NO_MEMBERS = {"bool", "void", "move", "runtime_error"}  # what else stands before a parenthesis


def without_arguments(name):
    """sluice::Chat::ask of sluice::Chat::ask[abi:cxx11](std::string const&) const."""
    return re.split(r"[(\[]", name, maxsplit=1)[0]


def declared_members():
    """{"Chat": {"ask", "~Chat", ...}} of the classes that are marked."""
    members = {}
    for match in re.finditer(r"^class SLUICE_API (\w+).*?\{(.*?)^\};", CPP, re.MULTILINE | re.DOTALL):
        body = re.sub(r"//.*", "", match[2])
        names = set(re.findall(r"(operator=|~?\w+)\(", body))
        members[match[1]] = {name for name in names - NO_MEMBERS if not name.endswith("_")}
    return members


class ExportsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        lines = run("nm", "-D", "--defined-only", "--demangle", LIBRARY).splitlines()
        cls.exported = {line.split(" ", 2)[2] for line in lines}
        cls.members = declared_members()

    def test_the_headers_are_read(self):
        self.assertEqual(set(self.members), {"Chat", "Engine", "Error", "Model", "Session"})
        self.assertLessEqual({"ask", "~Chat", "operator="}, self.members["Chat"])

    def test_c_functions_are_those_of_the_header(self):
        declared = set(re.findall(r"\b(sluice_\w+)\(", re.sub(r"/\*.*?\*/", "", HEADERS["sluice_c.h"], flags=re.DOTALL)))
        self.assertGreater(len(declared), 20)
        self.assertEqual({name for name in self.exported if "::" not in name}, declared)

    def test_cpp_functions_are_those_of_the_headers(self):
        free = {f"sluice::{name}" for name in re.findall(r"^SLUICE_API [^(]*?\b(\w+)\(", CPP, re.MULTILINE)}
        self.assertEqual(free, {"sluice::find_model", "sluice::list_models", "sluice::find_gpus"})
        allowed = free | {f"sluice::{owner}::{name}" for owner, names in self.members.items() for name in names}
        allowed |= {f"{kind} for sluice::Error" for kind in ("typeinfo", "typeinfo name", "vtable")}
        exported = {without_arguments(name) for name in self.exported if "::" in name}
        self.assertEqual(exported - allowed, set(), "exported, but in no header")
        # Inline ones, and the constructors of what cannot be made from outside, need not be there.
        inline = {"sluice::Error::Error", "sluice::Error::code", "sluice::Model::Model", "sluice::Engine::operator="}
        self.assertEqual(allowed - exported - inline, set(), "in a header, but not exported")

    def test_its_name_and_what_it_needs(self):
        dynamic = run("readelf", "-d", LIBRARY)
        self.assertIn("Library soname: [libsluice.so.0]", dynamic)
        needed = set(re.findall(r"Shared library: \[(.*?)\]", dynamic))
        self.assertEqual(needed - NEEDED, set())
        self.assertNotRegex(dynamic, "RPATH|RUNPATH|TEXTREL")


if __name__ == "__main__":
    installing.need("nm", "readelf")
    installing.main()
