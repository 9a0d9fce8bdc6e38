#!/usr/bin/env python3
"""No kernel keeps anything in local memory, but for the few words of KEPT: reads what ptxas reported when the objects were
built (OBJECT.ptxas, by cmake/keep_ptxas_report.sh), and fails on a spilled register or a stack frame, for any of the
architectures.

    ptxas_report.py --architectures 75,86,90 OBJECT...
    ptxas_report.py --self-test
"""
# SPDX-License-Identifier: Apache-2.0
import argparse
import re
import sys
from collections import namedtuple
from pathlib import Path

Kernel = namedtuple("Kernel", "name architecture stack stores loads registers")
# Bytes that kernels may keep there. Two blocks of wide_block to an SM leave 128 registers to a thread; what does not fit
# is read back once for a chunk of about 1,300 instructions, and one block to an SM, without it, is slower by a seventh
# (docs/decisions/0018).
KEPT = {"wide_block_kernel": 96}

ENTRY = re.compile(r"Compiling entry function '(\S+)' for 'sm_(\d+)a?'")
FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
REGISTERS = re.compile(r"Used (\d+) registers")


def kernels_of(report):
    """The kernels of a report. A function that is not a kernel counts for the kernel it was reported with."""
    kernels = []
    name = architecture = None
    frame = [0, 0, 0]
    for line in report.splitlines():
        if entry := ENTRY.search(line):
            name, architecture, frame = entry[1], entry[2], [0, 0, 0]
        elif found := FRAME.search(line):
            frame = [before + int(more) for before, more in zip(frame, found.groups())]
        elif (used := REGISTERS.search(line)) and name:
            kernels.append(Kernel(name, architecture, *frame, int(used[1])))
            name = None
    return kernels


def short(name):
    """A kernel's name and template arguments, still mangled."""
    found = re.search(r"\d([a-z_]+_kernel(I.*?E)?)Ev", name)
    return found[1] if found else name


def faults_of(kernels, architectures):
    """What is wrong with the kernels of one object, a line each."""
    faults = []
    names = {kernel.name for kernel in kernels}
    if not names:
        faults.append("no kernel was reported; was it built without -Xptxas -v?")
    for architecture in architectures:
        missing = names - {kernel.name for kernel in kernels if kernel.architecture == architecture}
        faults += [f"{short(name)} was not compiled for sm_{architecture}" for name in sorted(missing)]
    for kernel in kernels:
        most = max(kernel.stack, kernel.stores, kernel.loads)
        if most > KEPT.get(short(kernel.name).split("I")[0], 0):
            faults.append(
                f"{short(kernel.name)} for sm_{kernel.architecture}: {kernel.stack} bytes of stack, "
                f"{kernel.stores} spilled, {kernel.loads} read back, with {kernel.registers} registers; expected none"
            )
    return faults


def check(objects, architectures):
    n_kernels = n_faults = 0
    for path in objects:
        report = Path(f"{path}.ptxas")
        kernels = kernels_of(report.read_text()) if report.exists() else []
        n_kernels += len(kernels)
        for fault in faults_of(kernels, architectures):
            n_faults += 1
            print(f"{Path(path).name}: {fault}")
    print(f"{n_kernels} kernels of {len(objects)} objects, for sm_{', '.join(architectures)}: {n_faults} faults")
    return 1 if n_faults or not objects else 0


def self_test():
    def report(stack, stores, loads, architectures=("75", "90")):
        return "".join(
            f"ptxas info    : Compiling entry function '_ZN4cuda3_1_11down_kernelILi7EEEvi' for 'sm_{architecture}'\n"
            "ptxas info    : Function properties for _ZN4cuda3_1_11down_kernelILi7EEEvi\n"
            f"    {stack} bytes stack frame, {stores} bytes spill stores, {loads} bytes spill loads\n"
            "ptxas info    : Used 128 registers, used 1 barriers\n"
            for architecture in architectures
        )

    def faults(text):
        return faults_of(kernels_of(text), ["75", "90"])

    assert faults(report(0, 0, 0)) == []
    assert len(faults(report(16, 28, 24))) == 2 and "28 spilled" in faults(report(16, 28, 24))[0]
    assert len(faults(report(8, 0, 0))) == 2  # an array that is indexed by a variable
    assert faults(report(0, 0, 0, ["90"])) == ["down_kernelILi7EE was not compiled for sm_75"]
    assert len(faults("")) == 1
    assert faults(report(16, 28, 24).replace("11down_kernel", "17wide_block_kernel")) == []
    assert len(faults(report(16, 28, 100).replace("11down_kernel", "17wide_block_kernel"))) == 2
    called = "Function properties for f\n    8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads\n"
    assert len(faults(report(0, 0, 0).replace("ptxas info    : Used", called + "ptxas info    : Used"))) == 2
    print("ptxas_report: self-test passed")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--architectures", type=lambda text: text.split(","), default=[])
    parser.add_argument("objects", nargs="*")
    arguments = parser.parse_args()
    return self_test() if arguments.self_test else check(arguments.objects, arguments.architectures)


if __name__ == "__main__":
    sys.exit(main())
