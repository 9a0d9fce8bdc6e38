#!/usr/bin/env python3
"""LRU and Belady's optimum on a routing trace, written again from their definitions: the figures that
tests/unit/policy/belady_test.cpp expects of the shipped traces.

    tools/traces/replay.py TRACE.slrt [PERCENT ...]

Equal shares per layer. A step's experts are looked up, then copies are made for the next step; every
step is replayed, hits are counted in decode alone.
SPDX-License-Identifier: Apache-2.0
"""
import struct
import sys


def read(path):
    """(n_experts, [(is_decode, [ids of each layer, best first])])"""
    with open(path, "rb") as file:
        data = file.read()
    magic, version, n_layers, n_experts, _, n_name = struct.unpack_from("<4s5I", data)
    assert magic == b"SLRT" and version == 1
    pos = 24 + n_name + 8 * n_layers
    steps = []
    while data[pos]:
        is_decode = data[pos] == 2
        counts = data[pos + 5:pos + 5 + n_layers]
        pos += 5 + n_layers
        layers = []
        for n in counts:
            layers.append([struct.unpack_from("<H", data, pos + 4 * i)[0] for i in range(n)])
            pos += 4 * n
        steps.append((is_decode, layers))
    return n_experts, steps


def lru(uses, n_slots):
    """Resident experts, the most recently used first. Those of a step are never victims of it."""
    resident, n_hits = [], 0
    for is_decode, used in uses:
        hits = [e for e in used if e in resident]
        n_hits += is_decode * len(hits)
        missed = [e for e in used if e not in resident][:n_slots - len(hits)]
        new = [e for e in used if e in hits or e in missed]
        resident = (new + [e for e in resident if e not in new])[:n_slots]
    return n_hits


def belady(uses, n_slots):
    """Of what is resident or was used, those stay whose next use comes soonest."""
    places = {}
    for step, (_, used) in enumerate(uses):
        for e in used:
            places.setdefault(e, []).append(step)
    for later in places.values():
        later.reverse()
    resident, n_hits = set(), 0
    for is_decode, used in uses:
        n_hits += is_decode * len(resident.intersection(used))
        for e in used:
            places[e].pop()
        again = [e for e in resident.union(used) if places[e]]
        resident = set(sorted(again, key=lambda e: places[e][-1])[:n_slots])
    return n_hits


def main(path, *percents):
    n_experts, steps = read(path)
    n_layers = len(steps[0][1])
    layers = [[(is_decode, experts[l]) for is_decode, experts in steps] for l in range(n_layers)]
    for percent in map(float, percents or ("12.5", "25", "37.5", "50")):
        total = int(percent / 100 * n_layers * n_experts + 0.5)
        slots = [total * (l + 1) // n_layers - total * l // n_layers for l in range(n_layers)]
        hits = [sum(policy(uses, n) for uses, n in zip(layers, slots)) for policy in (lru, belady)]
        print(f"{percent:6} %: lru {hits[0]}, belady {hits[1]}")


if __name__ == "__main__":
    main(*sys.argv[1:])
