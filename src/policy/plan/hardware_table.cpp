// See hardware_table.h.
// SPDX-License-Identifier: Apache-2.0
#include "policy/plan/hardware_table.h"

namespace sluice::policy {
namespace {

constexpr KnownGpu kGpus[] = {
    {"rtx2080ti", 11, 616, "pcie3x16"},
    // GeForce 30
    {"rtx3050", 8, 224, "pcie4x8"},
    {"rtx3060", 12, 360, "pcie4x16"},
    {"rtx3060", 8, 240, "pcie4x16"},
    {"rtx3060ti", 8, 448, "pcie4x16"},
    {"rtx3070", 8, 448, "pcie4x16"},
    {"rtx3070ti", 8, 608, "pcie4x16"},
    {"rtx3080", 10, 760, "pcie4x16"},
    {"rtx3080", 12, 912, "pcie4x16"},
    {"rtx3080ti", 12, 912, "pcie4x16"},
    {"rtx3090", 24, 936, "pcie4x16"},
    {"rtx3090ti", 24, 1008, "pcie4x16"},
    // GeForce 40
    {"rtx4060", 8, 272, "pcie4x8"},
    {"rtx4060ti", 8, 288, "pcie4x8"},
    {"rtx4060ti", 16, 288, "pcie4x8"},
    {"rtx4070", 12, 504, "pcie4x16"},
    {"rtx4070super", 12, 504, "pcie4x16"},
    {"rtx4070ti", 12, 504, "pcie4x16"},
    {"rtx4070tisuper", 16, 672, "pcie4x16"},
    {"rtx4080", 16, 717, "pcie4x16"},
    {"rtx4080super", 16, 736, "pcie4x16"},
    {"rtx4090", 24, 1008, "pcie4x16"},
    // GeForce 50
    {"rtx5050", 8, 320, "pcie5x8"},
    {"rtx5060", 8, 448, "pcie5x8"},
    {"rtx5060ti", 16, 448, "pcie5x8"},
    {"rtx5060ti", 8, 448, "pcie5x8"},
    {"rtx5070", 12, 672, "pcie5x16"},
    {"rtx5070ti", 16, 896, "pcie5x16"},
    {"rtx5080", 16, 960, "pcie5x16"},
    {"rtx5090", 32, 1792, "pcie5x16"},
    // Workstation and server
    {"a4000", 16, 448, "pcie4x16"},
    {"a5000", 24, 768, "pcie4x16"},
    {"a6000", 48, 768, "pcie4x16"},
    {"rtx4000ada", 20, 360, "pcie4x16"},
    {"rtx6000ada", 48, 960, "pcie4x16"},
    {"rtxpro6000", 96, 1792, "pcie5x16"},
    {"l4", 24, 300, "pcie4x16"},
    {"l40s", 48, 864, "pcie4x16"},
    {"a100", 80, 1935, "pcie4x16"},
    {"a100", 40, 1555, "pcie4x16"},
    {"h100", 80, 3350, "pcie5x16"},
    {"h200", 140, 4800, "pcie5x16"},
};

// PCIe 4.0 and 5.0 x16 as measured (25-26 and 55 GB/s); the others are in proportion.
constexpr KnownLink kLinks[] = {
    {"pcie3x8", 6.2},  {"pcie3x16", 12.5}, {"pcie4x4", 6.2}, {"pcie4x8", 12.5},    {"pcie4x16", 25},
    {"pcie5x4", 12.5}, {"pcie5x8", 25},    {"pcie5x16", 52}, {"thunderbolt", 2.8},
};

// Two channels unless the name says more.
constexpr KnownMemory kMemories[] = {
    {"ddr3", 25.6, 4},        {"ddr4", 51.2, 8},        {"ddr4-quad", 102.4, 16},
    {"ddr4-octa", 204.8, 32}, {"ddr5", 89.6, 8},        {"ddr5-quad", 179.2, 24},
    {"ddr5-octa", 307.2, 32}, {"ddr5-12ch", 460.8, 64}, {"lpddr5x", 136.0, 12},
};

}  // namespace

std::span<const KnownGpu> known_gpus() { return kGpus; }
std::span<const KnownLink> known_links() { return kLinks; }
std::span<const KnownMemory> known_memories() { return kMemories; }

}  // namespace sluice::policy
