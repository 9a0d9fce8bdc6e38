#!/usr/bin/env python3
"""The .deb that cpack makes: its files, what it depends on, and that nothing in it names the place where it was made.
tools/test-deb installs it in a bare Debian.

    deb_test.py BUILD_FOLDER
"""
# SPDX-License-Identifier: Apache-2.0
import re
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

import installing
from installing import ANSWER, QUESTION, ROOT, run

BUILD = Path(sys.argv[1]).resolve()
FILES = """
usr/bin/sluice
usr/include/sluice/sluice_c.h
usr/lib/libsluice.a
usr/lib/libsluice.so
usr/lib/libsluice.so.0
usr/lib/pkgconfig/sluice.pc
usr/lib/cmake/sluice/sluice-config.cmake
usr/lib/systemd/system/sluice.service
usr/share/bash-completion/completions/sluice
usr/share/zsh/vendor-completions/_sluice
usr/share/fish/vendor_completions.d/sluice.fish
usr/share/man/man1/sluice.1
usr/share/sluice/models/demo-attn.gguf
usr/share/doc/sluice/copyright
""".split()


class DebTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.work = Path(cls.folder.name)
        run("cpack", "-G", "DEB", "--config", BUILD / "CPackConfig.cmake", "-B", cls.work / "made", cwd=BUILD)
        cls.debs = list((cls.work / "made").glob("*.deb"))
        run("dpkg-deb", "-x", cls.debs[0], cls.work / "root")
        run("dpkg-deb", "-e", cls.debs[0], cls.work / "control")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def field(self, name):
        return run("dpkg-deb", "-f", self.debs[0], name).strip()

    def test_there_is_one_with_a_debian_name(self):
        self.assertEqual(len(self.debs), 1)
        self.assertRegex(self.debs[0].name, r"^sluice_\d+\.\d+\.\d+_[a-z0-9]+\.deb$")

    def test_fields(self):
        self.assertEqual(self.field("Package"), "sluice")
        self.assertEqual(self.field("Version"), run(BUILD / "src/sluice", "version").split()[1])
        self.assertEqual(self.field("Architecture"), run("dpkg", "--print-architecture").strip())
        self.assertEqual(self.field("Section"), "science")
        self.assertIn("Mixture-of-Experts", self.field("Description"))
        self.assertRegex(self.field("Maintainer"), r"^sluice .*<.*>$")

    def test_it_depends_on_what_its_programs_load(self):
        depends = {word.split()[0] for word in self.field("Depends").split(",")}
        self.assertEqual(depends, {"libc6", "libgcc-s1", "libpcre2-8-0", "libstdc++6"})
        self.assertIn("libc6 (>= 2.", self.field("Depends"))
        # What it loads by name, when it fetches a model.
        loaded = re.search(rb"libcurl\.so\.(\d+)", (self.work / "root/usr/bin/sluice").read_bytes())
        self.assertEqual(self.field("Recommends"), f"libcurl{loaded[1].decode()}, ca-certificates")
        if shutil.which("dpkg-shlibdeps"):
            self.assertIn("ldconfig", (self.work / "control/postinst").read_text())

    def test_all_files_are_there(self):
        root = self.work / "root"
        self.assertEqual([name for name in FILES if not (root / name).exists()], [])
        outside = [path for path in root.iterdir() if path.name != "usr"]
        self.assertEqual(outside, [], "all of it belongs below /usr")
        names = {line.split()[1] for line in run("dpkg-deb", "-c", self.debs[0]).splitlines()}
        self.assertEqual(names, {"root/root"}, "files belong to root")

    def test_nothing_names_the_place_where_it_was_made(self):
        for path in (self.work / "root").rglob("*"):
            if path.is_file() and not path.is_symlink() and (path.suffix in (".pc", ".cmake", ".service", ".1", ".0", ".a") or path.name == "sluice"):
                named = [place for place in (ROOT, BUILD, self.work) if str(place).encode() in path.read_bytes()]
                self.assertEqual(named, [], path)
        unit = (self.work / "root/usr/lib/systemd/system/sluice.service").read_text()
        self.assertIn("\nExecStart=/usr/bin/sluice serve ", unit)

    def test_the_program_in_it_answers(self):
        sluice = self.work / "root/usr/bin/sluice"
        self.assertIn(ANSWER, run(sluice, "run", "-p", QUESTION, "--temp", "0"))
        self.assertIn("no symbols", run("nm", sluice), "it is to be stripped")


if __name__ == "__main__":
    installing.need("cpack", "dpkg-deb", "dpkg", "nm")
    installing.main()
