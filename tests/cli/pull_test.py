#!/usr/bin/env python3
"""sluice pull, list and rm, and models named by -hf, against a hub on this machine that fails in every way.

    pull_test.py SLUICE [--mib 32]     (1024: the long run, the same through 40 faults)
"""
# SPDX-License-Identifier: Apache-2.0
import argparse
import json
import os
import pathlib
import pty
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from failing_hub import Hub

MIB = 1024 * 1024
PATIENCE = 300
FAULTS = ["drop_early", "drop_half", "wrong_range", "whole", "error", "drop_half", "busy", "drop_half"]
arguments = None


class PullTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = pathlib.Path(folder.name)
        self.models = self.home / "models"

    def hub(self, files):
        hub = Hub(files)
        self.addCleanup(hub.close)
        self.url = hub.url
        return hub

    def start(self, *args, limit=None, stderr=subprocess.PIPE, **environment):
        env = {**os.environ, "HOME": str(self.home), "SLUICE_MODELS": str(self.models), "HF_ENDPOINT": self.url,
               "XDG_DATA_HOME": "", "OLLAMA_MODELS": "", "HF_TOKEN": "", "HF_HUB_OFFLINE": "",
               "no_proxy": "*", **environment}
        small = limit and (lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        return subprocess.Popen([arguments.sluice, *args], env=env, text=True, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=stderr, preexec_fn=small)

    def sluice(self, *args, rc=0, **options):
        process = self.start(*args, **options)
        out, err = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, rc, out + err)
        return out + err

    def path(self, name="m-Q4_K_M.gguf"):
        return self.models / "user/repo" / name

    def assert_whole(self, data, name="m-Q4_K_M.gguf"):
        self.assertTrue(self.path(name).read_bytes() == data, "the file differs")
        self.assertEqual([p.name for p in self.path(name).parent.glob("*.partial")], [])

    def test_forty_failures_cost_few_bytes(self):
        chance = random.Random(1)
        data = b"".join(chance.randbytes(MIB) for _ in range(arguments.mib))  # no two pieces are alike
        hub = self.hub({"m-Q4_K_M.gguf": data})
        hub.faults = (FAULTS * 5)[:40]
        said = json.loads(self.pulled("--retries", "40"))
        # The server counts: libcurl itself repeats a request whose kept connection was closed, and tells nobody.
        self.assertEqual(hub.n_faults, 40)
        self.assertGreater(said["n_failures"], 0)
        self.assert_whole(data)
        self.assertLessEqual(hub.n_sent, 1.05 * len(data))
        print(f"{len(data)} bytes, {hub.n_sent} sent, {said['n_failures']} failures", file=sys.stderr)

    def pulled(self, *flags):
        process = self.start("pull", "user/repo", "--json", *flags)
        out, err = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 0, err)
        return out

    def test_wrong_bytes_never_get_the_name(self):
        data = random.Random(2).randbytes(3 * MIB)
        hub = self.hub({"m-Q4_K_M.gguf": data})
        hub.faults = ["wrong_bytes"]
        said = self.sluice("pull", "user/repo", rc=1)
        self.assertIn("SHA-256", said)
        self.assertEqual(list(self.models.rglob("*.gguf*")), [])
        self.sluice("pull", "user/repo")
        self.assert_whole(data)

    def test_a_token_goes_to_the_hub_alone_and_is_never_shown(self):
        data = random.Random(3).randbytes(2 * MIB)
        hub = self.hub({"m-Q4_K_M.gguf": data})
        other = Hub(hub.files)
        self.addCleanup(other.close)
        hub.needed_token = "hf_secret"
        hub.redirect_to = other.url.replace("127.0.0.1", "localhost")
        said = self.sluice("pull", "user/repo", rc=1)
        self.assertIn("HF_TOKEN", said)
        said = self.sluice("pull", "user/repo", HF_TOKEN="hf_secret")
        self.assertNotIn("hf_secret", said)
        self.assert_whole(data)
        self.assertTrue(other.requests)
        for _, headers in other.requests:
            self.assertNotIn("Authorization", headers)

    def test_a_server_that_stands_still_is_left(self):
        data = random.Random(4).randbytes(MIB)
        hub = self.hub({"m-Q4_K_M.gguf": data})
        hub.faults = ["stall"]
        self.assertIn("taken up again 1 times", self.sluice("pull", "user/repo", "--timeout", "1"))
        self.assert_whole(data)

    def test_a_full_disk_keeps_what_came(self):
        data = random.Random(5).randbytes(8 * MIB)
        hub = self.hub({"m-Q4_K_M.gguf": data})
        said = self.sluice("pull", "user/repo", rc=1, limit=3 * MIB)
        self.assertIn("make room and run it again", said)
        self.assertFalse(self.path().exists())
        self.sluice("pull", "user/repo")
        self.assert_whole(data)

    def test_ctrl_c_keeps_what_came_and_a_second_pull_waits_not(self):
        data = random.Random(6).randbytes(16 * MIB)
        hub = self.hub({"m-Q4_K_M.gguf": data})
        hub.pace = 0.05
        process = self.start("pull", "user/repo")
        while hub.n_sent < 2 * MIB:
            self.assertIsNone(process.poll())
            time.sleep(0.02)
        self.assertIn("another sluice is fetching", self.sluice("pull", "user/repo", rc=1))
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, -signal.SIGINT, err)
        self.assertIn("run it again to go on", err)
        self.assertFalse(self.path().exists())
        self.assertIn("unfinished", self.sluice("list"))
        hub.pace = 0.0
        self.assertIn("are here already", self.sluice("pull", "user/repo"))
        self.assert_whole(data)

    def test_names_of_the_hub_stay_in_the_folder(self):
        self.hub({"../../evil-Q4_K_M.gguf": b"x", "/tmp/evil-Q4_K_M.gguf": b"y"})
        self.assertIn("holds no GGUF file", self.sluice("pull", "user/repo", rc=1))
        self.assertEqual(list(self.home.rglob("*evil*")), [])

    def test_all_files_of_a_split_model_come_and_only_those_that_lack(self):
        files = {f"split/m-Q4_K_M-{n:05}-of-00003.gguf": random.Random(n).randbytes(n * MIB) for n in (1, 2, 3)}
        hub = self.hub({"README.md": b"text", "split/m-Q8_0.gguf": b"another", **files})
        hub.faults = ["drop_half", "wrong_range", "drop_early"]
        said = json.loads(self.pulled())
        self.assertEqual((said["name"], said["bytes"]), ("user/repo:Q4_K_M", 6 * MIB))
        self.assertEqual(said["path"], str(self.path("split/m-Q4_K_M-00001-of-00003.gguf")))
        for name, data in files.items():
            self.assert_whole(data, name)
        self.assertEqual(len(list(self.models.rglob("*.gguf"))), 3, "the others are not fetched")
        self.assertEqual(self.sluice("list", "--names").count("user/repo"), 1)
        self.path("split/m-Q4_K_M-00002-of-00003.gguf").unlink()
        hub.n_sent = 0
        self.pulled()
        self.assertEqual(hub.n_sent, 2 * MIB)
        self.assertEqual(json.loads(self.pulled())["bytes_fetched"], 0)
        self.sluice("rm", "user/repo")
        self.assertEqual(list(self.models.rglob("*")), [])

    def test_a_plan_reads_the_header_alone_and_says_how_fast_it_would_be(self):
        big = self.home / "big.gguf"
        self.url = "http://127.0.0.1:1"
        self.sluice("synth", str(big), "--layers", "4", "--experts", "8", "--type", "F32")
        data = big.read_bytes()
        self.assertGreater(len(data), 16 * MIB)
        hub = self.hub({"m-Q4_K_M.gguf": data})
        machine = ("--hw", "vram=12GiB,gpu=400GB/s,link=25GB/s,ram=64GiB,cpu=60GB/s")
        said = self.sluice("plan", "-hf", "user/repo", *machine)
        self.assertRegex(said, r"predicted +decode t/s +prefill t/s[^\n]*\n  > all resident +\d")
        self.assertLessEqual(hub.n_sent, 2 * MIB)
        self.assertTrue(all("Range" in headers for path, headers in hub.requests if "/resolve/" in path))
        self.assertEqual(list(self.models.rglob("*")), [], "nothing is kept")

        def without_names(text):
            return text.replace(str(big), "M").replace("hf.co/user/repo/m-Q4_K_M.gguf", "M")
        known = without_names(self.sluice("plan", str(big), *machine))
        for line in known.splitlines():
            self.assertIn(line, without_names(said), "the plan is that of the whole file")

    def test_a_terminal_shows_rate_and_time_left(self):
        data = random.Random(7).randbytes(8 * MIB)
        hub = self.hub({"m-Q4_K_M.gguf": data})
        hub.pace = 0.02
        ours, theirs = pty.openpty()
        process = self.start("pull", "user/repo", stderr=theirs)
        os.close(theirs)
        shown = b""
        while True:
            try:
                more = os.read(ours, 4096)
            except OSError:  # the last writer has gone
                break
            if not more:
                break
            shown += more
        os.close(ours)
        process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 0, shown)
        self.assertGreater(hub.most_at_once, 1, "one connection")
        self.assertRegex(shown.decode(), r"pulling \[#*\.*\] \d+ %  [\d.]+ [KM]iB of 8.00 MiB  [\d.]+ [KM]iB/s  \d+ s left")
        self.assert_whole(data)

    def test_plan_inspect_run_list_and_rm(self):
        small = self.home / "small.gguf"
        self.url = "http://127.0.0.1:1"
        self.sluice("synth", str(small), "--layers", "2")
        hub = self.hub({"m-Q4_K_M.gguf": small.read_bytes()})
        said = self.sluice("plan", "-hf", "user/repo:Q4_K_M")
        self.assertIn("only the model's header was fetched", said)
        self.assertFalse(self.path().exists())
        self.assertIn("qwen3moe", self.sluice("inspect", "-hf", "user/repo"))
        self.sluice("run", "-hf", "user/repo", "--tokens", "1,2", "-n", "2")
        self.assert_whole(small.read_bytes())
        self.assertIn("user/repo:Q4_K_M", self.sluice("list"))
        n = len(hub.requests)
        self.sluice("run", "-hf", "user/repo", "--tokens", "1,2", "-n", "2", HF_HUB_OFFLINE="1")
        self.assertEqual(len(hub.requests), n)
        self.assertIn("removed user/repo:Q4_K_M", self.sluice("rm", "user/repo:Q4_K_M"))
        self.assertEqual(list(self.models.rglob("*")), [])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sluice")
    parser.add_argument("--mib", type=int, default=32)
    arguments, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
