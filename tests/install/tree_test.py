#!/usr/bin/env python3
"""The installed tree, moved to another place: all files are there, the program answers with the models it came with, and
programs of others are built against it, in C, C++ and Python.

    tree_test.py BUILD_FOLDER
"""
# SPDX-License-Identifier: Apache-2.0
import os
import shlex
import sys
import tempfile
import unittest
from pathlib import Path

import installing
from installing import ANSWER, QUESTION, ROOT, run

BUILD = Path(sys.argv[1]).resolve()
FILES = """
bin/sluice
lib/libsluice.a
lib/libsluice.so
lib/libsluice.so.0
lib/pkgconfig/sluice.pc
lib/cmake/sluice/sluice-config.cmake
lib/cmake/sluice/sluice-config-version.cmake
lib/cmake/sluice/sluice-targets.cmake
lib/systemd/system/sluice.service
share/bash-completion/completions/sluice
share/zsh/site-functions/_sluice
share/fish/vendor_completions.d/sluice.fish
share/man/man1/sluice.1
share/sluice/models/demo-attn.gguf
share/sluice/models/demo-hybrid.gguf
share/doc/sluice/copyright
share/doc/sluice/examples/ask.c
share/doc/sluice/examples/ask.cpp
share/doc/sluice/examples/ask.py
""".split() + [f"include/sluice/{header.name}" for header in (ROOT / "include/sluice").glob("*.h")]

PROJECT = """cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES {languages})
find_package(sluice 0.1 REQUIRED)
add_executable(ask {source})
set_target_properties(ask PROPERTIES CXX_STANDARD 20)
target_link_libraries(ask PRIVATE {target})
"""


class TreeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.work = Path(cls.folder.name)
        first = cls.work / "first"
        installing.install(BUILD, first)
        # Whatever remembers where it was installed is wrong from now on.
        cls.prefix = cls.work / "moved" / "prefix"
        cls.prefix.parent.mkdir()
        first.rename(cls.prefix)
        cls.library = {"LD_LIBRARY_PATH": str(cls.prefix / "lib")}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def pkg_config(self, *flags):
        env = {"PKG_CONFIG_PATH": str(self.prefix / "lib/pkgconfig")}
        return shlex.split(run("pkg-config", *flags, "sluice", env=env))

    def example(self, name):
        return self.prefix / "share/doc/sluice/examples" / name

    def compile(self, name, *command):
        out = self.work / name
        run(*command, "-o", out)
        return out

    def test_all_files_are_there(self):
        missing = [name for name in FILES if not (self.prefix / name).exists()]
        self.assertEqual(missing, [])

    def test_nothing_knows_where_it_was_built(self):
        for path in self.prefix.rglob("*"):
            if path.suffix in (".pc", ".cmake", ".1", ".fish") or "completions" in path.parts:
                if path.is_file():
                    for place in (str(ROOT), str(BUILD), str(self.work)):
                        self.assertNotIn(place, path.read_text(), path)

    def test_the_unit_starts_the_program_that_was_installed(self):
        unit = (self.prefix / "lib/systemd/system/sluice.service").read_text()
        self.assertIn(f"\nExecStart={self.work}/first/bin/sluice serve ", unit)
        self.assertNotIn("/usr/local", unit)

    def test_a_staged_tree_is_for_the_prefix_alone(self):
        stage = self.work / "stage"
        run(ROOT / "tools/install-built", "/opt/sluice", BUILD, env={"DESTDIR": str(stage)})
        self.assertEqual([path.name for path in stage.iterdir()], ["opt"])
        self.assertIn(ANSWER, run(stage / "opt/sluice/bin/sluice", "run", "-p", QUESTION, "--temp", "0"))
        self.assertTrue((stage / "opt/sluice/share/zsh/site-functions/_sluice").exists())
        unit = (stage / "opt/sluice/lib/systemd/system/sluice.service").read_text()
        self.assertIn("\nExecStart=/opt/sluice/bin/sluice serve ", unit)

    def test_make_takes_prefix_and_destdir(self):
        for word in ("PREFIX", "prefix"):
            planned = run("make", "-n", "install", f"{word}=/opt/x", "DESTDIR=/stage", "cuda=", cwd=ROOT)
            self.assertIn('DESTDIR="/stage" tools/install-built "/opt/x"', planned)

    def test_without_a_build_it_says_what_to_do(self):
        done = run(ROOT / "tools/install-built", self.work / "none", self.work, ok=None)
        self.assertEqual(done.returncode, 1)
        self.assertIn("nothing is built yet; run this first, not as root: make installable", done.stdout)
        self.assertFalse((self.work / "none").exists())

    def test_the_program_answers_with_its_own_models(self):
        sluice = self.prefix / "bin/sluice"
        self.assertRegex(run(sluice, "version"), r"^sluice \d+\.\d+\.\d+\n$")
        found = run(sluice, "list")
        self.assertIn(str(self.prefix / "share/sluice/models/demo-attn.gguf"), found)
        self.assertNotIn(str(ROOT), found)
        self.assertIn(ANSWER, run(sluice, "run", "-p", QUESTION, "--temp", "0"))
        # Through a link, as people put programs into ~/bin.
        link = self.work / "sluice-link"
        link.symlink_to(sluice)
        self.assertIn(ANSWER, run(link, "run", "-p", QUESTION, "--temp", "0"))

    def test_without_its_models_it_says_so(self):
        alone = self.work / "alone"
        alone.write_bytes((self.prefix / "bin/sluice").read_bytes())
        alone.chmod(0o755)
        done = run(alone, "run", "-p", QUESTION, ok=None)
        self.assertEqual(done.returncode, 1)
        self.assertIn("there is no model 'demo-attn'", done.stdout)

    def test_completions_and_manual_page(self):
        completions = self.prefix / "share/bash-completion/completions/sluice"
        run("bash", "-n", completions)
        script = f'. {completions}; complete -p sluice'
        self.assertIn("sluice", run("bash", "-c", script))
        self.assertTrue((self.prefix / "share/zsh/site-functions/_sluice").read_text().startswith("#compdef sluice"))
        self.assertIn("complete -c sluice", (self.prefix / "share/fish/vendor_completions.d/sluice.fish").read_text())
        self.assertIn(".TH", (self.prefix / "share/man/man1/sluice.1").read_text())

    def test_the_c_header_is_plain_c99_and_cpp(self):
        strict = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", "-include", "sluice/sluice_c.h", "-I",
                  self.prefix / "include", "/dev/null"]
        run("gcc", "-std=c99", "-x", "c", *strict)
        run("gcc", "-std=c17", "-x", "c", *strict)
        run("g++", "-std=c++11", "-x", "c++", *strict)
        # Who includes the C++ header in C gets C's.
        program = self.work / "version.c"
        program.write_text('#include <sluice/sluice.h>\nint main(void) { return sluice_version() == NULL; }\n')
        run("gcc", "-std=c99", "-Wall", "-Werror", "-pedantic", "-fsyntax-only", "-I", self.prefix / "include", program)

    def test_every_cpp_header_stands_alone(self):
        for header in sorted((self.prefix / "include/sluice").glob("*.h")):
            run("g++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", "-I", self.prefix / "include",
                "-include", header, "-x", "c++", "/dev/null")

    def test_an_example_in_c(self):
        ask = self.compile("ask-c", "gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", self.example("ask.c"),
                           *self.pkg_config("--cflags", "--libs"))
        self.assertEqual(run(ask, QUESTION, env=self.library), ANSWER + "\n")
        done = run(ask, QUESTION, "/no/such.gguf", env=self.library, ok=None)
        self.assertEqual(done.returncode, 1)
        self.assertIn("ask: /no/such.gguf", done.stdout)

    def test_an_example_in_c_with_the_archive(self):
        flags = ["-l:libsluice.a" if flag == "-lsluice" else flag for flag in self.pkg_config("--cflags", "--libs", "--static")]
        ask = self.compile("ask-static", "gcc", "-std=c99", self.example("ask.c"), *flags)
        self.assertNotIn("libsluice", run("readelf", "-d", ask))
        # Nothing but the program's own place leads to the models, and it is not beside them.
        self.assertEqual(run(ask, QUESTION, self.prefix / "share/sluice/models/demo-attn.gguf"), ANSWER + "\n")

    def test_an_example_in_python(self):
        ask = self.example("ask.py")
        self.assertTrue(os.access(ask, os.X_OK))
        self.assertEqual(run(sys.executable, ask, QUESTION, env=self.library), ANSWER + "\n")
        done = run(sys.executable, ask, QUESTION, "nosuch", env=self.library, ok=None)
        self.assertEqual(done.returncode, 1)
        self.assertIn("ask: there is no model 'nosuch'", done.stdout)

    def test_an_example_in_cpp_with_pkg_config(self):
        ask = self.compile("ask-cpp", "g++", "-std=c++20", self.example("ask.cpp"), *self.pkg_config("--cflags", "--libs"))
        self.assertEqual(run(ask, QUESTION, env=self.library), ANSWER + "\n")

    def find_package(self, languages, source, target):
        folder = Path(tempfile.mkdtemp(dir=self.work))
        (folder / "CMakeLists.txt").write_text(PROJECT.format(languages=languages, source=self.example(source), target=target))
        run("cmake", "-S", folder, "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={self.prefix}")
        run("cmake", "--build", folder / "build")
        return folder / "build/ask"

    def test_an_example_in_cpp_with_find_package(self):
        ask = self.find_package("CXX", "ask.cpp", "sluice::sluice")
        self.assertEqual(run(ask, QUESTION), ANSWER + "\n")  # CMake has put the library's place into the program

    def test_an_example_in_c_with_find_package(self):
        ask = self.find_package("C", "ask.c", "sluice::sluice")
        self.assertEqual(run(ask, QUESTION), ANSWER + "\n")

    def test_an_example_with_find_package_and_the_archive(self):
        ask = self.find_package("CXX", "ask.cpp", "sluice::sluice_static")
        self.assertNotIn("libsluice", run("readelf", "-d", ask))
        (ask.parent / "bin").mkdir()
        ask = ask.rename(ask.parent / "bin/ask")
        (ask.parent.parent / "share").symlink_to(self.prefix / "share")
        self.assertEqual(run(ask, QUESTION), ANSWER + "\n")


if __name__ == "__main__":
    installing.need("cmake", "make", "pkg-config", "gcc", "g++", "readelf", "bash")
    installing.main()
