#!/usr/bin/env python3
"""tools/gpu-test itself, on a machine without a GPU: programs that stand in for the GPU's, and the RAM device.

    gpu_test_test.py SLUICE SOAK
"""
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SLUICE = SOAK = None

STAND_INS = {
    "path/nvidia-smi": """case "$*" in
  *memory.used*-lms*) while echo 700; do sleep 0.1; done ;;
  *memory.used*) echo 500 ;;
  *compute-apps*) echo -n "$OTHERS" ;;
  *driver_version*) echo 1.2 ;;
  *) echo "A card" ;;
esac""",
    "path/compute-sanitizer": 'echo "ERROR SUMMARY: 0 errors"; echo "RACECHECK SUMMARY: 0 hazards"',
    "bin/gpu_tests": 'echo "[       OK ] A.B (0 ms)"',
    "bin/gpu_engine_tests": 'sleep 0.2; echo "[       OK ] C.D (0 ms)"',
    "bin/bench_gpu_kernels": 'echo "| kernels |"; [[ $* != --layers ]] || sleep 0.05',
    "bin/bench_gpu_wide": 'echo "| wide |"',
    "bin/bench_gpu_wide_trunk": 'echo "| trunk |"',
    "bin/bench_start": '[[ $3 == cuda && -f $1 && -f $2 ]] && echo "| start with $4 |"',
    "bin/bench_handshakes": '[[ $2 == cuda && -f $1 ]] && echo "| $3 handshakes |"',
    "bin/stopped_worker": '[[ $3 == cuda && -f $1 ]] && echo "stopped for $2 s"',
}
# Lengths of prompts and texts become short ones.
ON_RAM_DEVICE = """words=()
for word; do
  [[ ${words[-1]-} != -[pnd] ]] || word=$(sed 's/[0-9]\\{3,\\}/16/g' <<<"$word")
  words+=("${word/#cuda/sim}")
done
exec "SLUICE" "${words[@]}\""""
TABLES = {"kernels", "wide", "session", "cache", "hybrid", "slow", "choice", "start", "handshakes", "stop", "soak"}


class GpuTestTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name, text in STAND_INS.items():
            self.stand_in(name, text)
        self.stand_in("bin/sluice", ON_RAM_DEVICE.replace("SLUICE", str(SLUICE)))
        self.stand_in("bin/soak", f'exec "{SOAK}" "${{@/#cuda/sim}}"')

    def stand_in(self, name, text):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/bash\n{text}\n")
        path.chmod(0o755)

    def run_it(self, only, limit=120, **more):
        env = {**os.environ, "PATH": f"{self.folder}/path:{os.environ['PATH']}", "BIN": f"{self.folder}/bin",
               "MODELS": str(self.folder), "SHAPE": "small", "ONLY": only, "LIMIT": str(limit), "COMMIT": "c0ffee",
               "SOAK_SECONDS": "3", **more}
        return subprocess.run([ROOT / "tools/gpu-test", self.folder / "results"], env=env, capture_output=True,
                              text=True, timeout=600)

    def tables(self):
        return {p.stem.removeprefix("gpu_"): p.read_text() for p in (self.folder / "results").glob("*.md")}

    def test_other_programs_on_the_card_are_named(self):
        os.environ["OTHERS"] = "a_game\n"
        self.addCleanup(os.environ.pop, "OTHERS")
        self.assertIn("Beside other programs", self.run_it("kernels").stderr)
        self.assertIn("make it slower: a_game.", self.tables()["kernels"].replace("\n", " "))

    def test_every_part_runs_and_writes_its_table(self):
        done = self.run_it("tests beside sanitize kernels wide session cache hybrid slow choice start handshakes stop soak")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        tables = self.tables()
        self.assertEqual(set(tables), TABLES)
        for name, text in tables.items():
            self.assertIn("A card, driver 1.2", text, name)
            self.assertIn("Tests: 2 passed.", text.replace("\n", " "), name)
            self.assertIn("0 hazards", text.replace("\n", " "), name)
            self.assertIn("Beside another program on the card: 1 passed.", text.replace("\n", " "), name)
        self.assertIn("| 200 MiB |", tables["cache"])
        self.assertEqual(tables["cache"].count("| `-"), 15)
        self.assertIn("--route-trace uniform.slrt --vram 12GiB` |", tables["cache"])
        self.assertEqual(tables["hybrid"].count("| `-"), 7)
        self.assertIn("| trunk |", tables["wide"])
        self.assertEqual(tables["slow"].count("| `-"), 4)
        self.assertNotIn("failed", tables["slow"] + tables["cache"])
        for line in [f"| {vram} |" for vram in ("12GiB", "8GiB", "5GiB")]:
            self.assertEqual(tables["choice"].count(line), 2, tables["choice"])
        self.assertRegex(tables["choice"], r"\| [01]\.\d\d \|\n")
        self.assertIn("| 0.35 |", tables["choice"])
        self.assertRegex(tables["choice"], r"\| 12GiB \| \d+ \| \d+\.\d\d GB \|")
        self.assertIn("| start with 12GiB |", tables["start"])
        self.assertIn("| 1000000 handshakes |", tables["handshakes"])
        self.assertIn("- stopped for 30 s", tables["stop"])
        self.assertIn("- speed: last fifth", tables["soak"])
        self.assertRegex(tables["soak"], r"- answers: \d+ compared with earlier ones, 0 others")
        self.assertEqual(list(self.folder.glob("gpu-test-*")), [], "it leaves its models behind")

    def test_kept_models_are_of_the_shape_that_is_asked_for(self):
        self.stand_in("bin/sluice", '[[ $1 == synth ]] && echo "| synth ${*:3} |" | tee -a "${0%/*}/calls" >"$2"')
        self.stand_in("bin/bench_handshakes", 'cat "$1"')
        for shape, flags in [("small", "--layers 4"), ("", "--layers 8"), ("small", "--layers 4"), ("", "--layers 8")]:
            self.assertEqual(self.run_it("handshakes", KEEP="1", SHAPE=shape).returncode, 0)
            self.assertIn(f"| synth {flags} ", self.tables()["handshakes"])
        self.assertEqual((self.folder / "bin/calls").read_text().count("synth"), 2, "each is written once")

    def test_a_part_that_fails_is_named_and_the_others_run(self):
        self.stand_in("bin/gpu_engine_tests", 'echo "the reason"; exit 1')
        self.stand_in("bin/bench_gpu_kernels", 'echo "half a table"; exit 1')
        done = self.run_it("tests kernels wide")
        self.assertEqual(done.returncode, 1)
        self.assertIn("the reason", done.stderr)
        self.assertIn("failed: gpu_engine_tests; Decode kernels on a GPU; see above", done.stderr)
        self.assertEqual(set(self.tables()), {"wide"})
        self.assertIn("Tests: failed.", self.tables()["wide"])

    def test_tests_beside_another_program_need_one(self):
        self.stand_in("bin/bench_gpu_kernels", "exit 1")
        done = self.run_it("beside")
        self.assertEqual(done.returncode, 1)
        self.assertIn("failed: the program beside gpu_engine_tests; see above", done.stderr)

    def test_a_command_that_hangs_is_stopped(self):
        self.stand_in("bin/gpu_tests", "sleep 1000")
        done = self.run_it("tests wide", limit=2)
        self.assertEqual(done.returncode, 1)
        self.assertIn("failed: gpu_tests;", done.stderr)
        self.assertEqual(set(self.tables()), {"wide"})

    def test_skipped_tests_show_nothing(self):
        self.stand_in("bin/gpu_tests", 'echo "[  SKIPPED ] A.B (0 ms)"')
        done = self.run_it("tests")
        self.assertEqual(done.returncode, 1)
        self.assertIn("some were skipped", done.stderr)


if __name__ == "__main__":
    SLUICE, SOAK = sys.argv.pop(1), sys.argv.pop(1)
    unittest.main(verbosity=0)
