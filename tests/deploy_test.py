#!/usr/bin/env python3
"""The files of deploy/: systemd accepts the unit, stopping takes longer than draining everywhere, the image is built
from what exists, and its health check tells a living server from a dead one. haproxy.cfg is tested by
tests/server/replicas_test.py.

    deploy_test.py SLUICE
"""
# SPDX-License-Identifier: Apache-2.0
import json
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DEPLOY = ROOT / "deploy"
sys.path.insert(0, str(ROOT / "tests" / "server"))
import serving  # noqa: E402, the folder is added above


def number(pattern, text):
    """The only number of a pattern in a file."""
    found = re.findall(pattern, text)
    assert len(found) == 1, f"{pattern}: found {found}, expected one"
    return int(found[0])


class DeployTest(unittest.TestCase):
    def setUp(self):
        self.unit = (DEPLOY / "sluice.service").read_text()
        self.image = (DEPLOY / "Containerfile").read_text()
        self.pods = (DEPLOY / "kubernetes" / "sluice.yaml").read_text()

    def test_systemd_accepts_the_unit(self):
        if not shutil.which("systemd-analyze"):
            self.skipTest("there is no systemd-analyze")
        with tempfile.TemporaryDirectory() as folder:  # the program need not be installed here
            unit = Path(folder) / "sluice.service"
            unit.write_text(self.unit.replace("/usr/local/bin/sluice", str(Path(serving.SLUICE).resolve())))
            done = subprocess.run(["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True,
                                  timeout=serving.PATIENCE)
        complaints = [line for line in done.stderr.splitlines() if "sluice.service" in line]
        self.assertEqual(complaints, [])
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_units_settings_have_an_example(self):
        settings = set(re.findall(r"^(SLUICE_\w+)=", (DEPLOY / "sluice.env").read_text(), re.MULTILINE))
        self.assertEqual(settings, set(re.findall(r"\$\{?(SLUICE_\w+)", self.unit)))

    def test_stopping_takes_longer_than_draining(self):
        self.assertGreater(number(r"(?m)^TimeoutStopSec=(\d+)$", self.unit), number(r"--drain (\d+)", self.unit))
        drain = number(r'--drain\s+- "(\d+)"', self.pods)
        wait = number(r'command: \["sleep", "(\d+)"\]', self.pods)
        self.assertGreater(number(r"terminationGracePeriodSeconds: (\d+)", self.pods), wait + drain)

    def test_every_flag_exists(self):
        flags = set(re.findall(r"(?:^|\s)(--[a-z-]+)", subprocess.run(
            [serving.SLUICE, "serve", "--help"], capture_output=True, text=True, check=True).stdout.replace(",", " ")))
        command = self.unit[self.unit.index("ExecStart="):self.unit.index("KillSignal")]
        texts = {"sluice.service": command, "sluice.yaml": "\n".join(re.findall(r"- (--\S+)", self.pods)),
                 "Containerfile": self.image[self.image.index("ENTRYPOINT"):].replace('"', " "),
                 "sluice.env": re.search(r"^SLUICE_FLAGS=(.*)$", (DEPLOY / "sluice.env").read_text(), re.M)[1]}
        for name, text in texts.items():
            for flag in re.findall(r"(?<!\S)--[a-z-]+", text):
                self.assertIn(flag, flags, f"{name}: sluice serve has no {flag}")

    def test_the_image_is_made_of_what_exists(self):
        self.assertEqual(set(re.findall(r"(?m)^FROM (\S+)", self.image)), {"$DEBIAN"})
        self.assertRegex(self.image, r"(?m)^ARG DEBIAN=debian:12$")
        for sources in re.findall(r"(?m)^COPY (?!--from)(.+) \S+$", self.image):
            for source in sources.split():
                self.assertTrue((ROOT / source).exists(), f"Containerfile copies {source}, which is not there")
        self.assertRegex(self.image, r"(?m)^USER [1-9]\d*:[1-9]\d*$")

    def test_the_images_health_check(self):
        command = json.loads(re.search(r"^    CMD (\[.*\])$", self.image, re.MULTILINE)[1])
        with serving.Server() as server:
            here = [part.replace("/8080", f"/{server.port}") for part in command]
            self.assertEqual(subprocess.run(here, timeout=serving.PATIENCE).returncode, 0)
        dead = subprocess.run(here, timeout=serving.PATIENCE, capture_output=True)
        self.assertNotEqual(dead.returncode, 0, "the check calls a dead server healthy")


if __name__ == "__main__":
    serving.main()
