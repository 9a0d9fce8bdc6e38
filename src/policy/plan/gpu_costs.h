// What a GPU's work costs besides its bytes at the card's rate: each figure once, with what it was
// taken from, so that a new measurement corrects one line. All are of H200s with plain reads of
// 4.5 TB/s and copies of 4.17 to 4.29 TB/s, which is the rate a plan has there; bench/results has
// the tables, and tokens/s below are theirs (a65068a where nothing else is said). They hold for all
// cards: what takes time takes as long on any, and what is slower than memory is so in bytes/s, so
// a card whose memory is slower than that does not notice.
//
// docs/decisions/0016 says how they were found and which lines they do not fit.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace sluice::policy {

// --- a step of one row ---

// A kernel of a recorded step, besides its bytes. Qwen3-30B-A3B with all experts in VRAM, 718
// tokens/s in two rounds: 27.1 us a layer without output and step, of which bytes are 7.9 and the
// experts' two kernels Machine::experts_us (6).
constexpr double kKernelSeconds = 3.3e-6;
// The trunk of a layer with experts: what it projects, attends or recurs, and adds, and the router.
constexpr int kTrunkKernels = 4;
constexpr double kGpuLayerSeconds = kTrunkKernels * kKernelSeconds;

// Attention in several parts, which have to be added up: from so many positions on. A token takes
// 105 us longer at 512 positions (668 tokens/s) than at 64 (718), of which bytes are 16.
constexpr double kSplitSeconds = 1.8e-6;
constexpr int kSplitPositions = 256;
// Keys and values that one row attends to: a token takes 384 us longer at 8,256 positions (563
// tokens/s) than at 64, of which the parts are 86: 805 MB in 298.
constexpr double kAttendRate = 2700e9;
// The state of the gated delta rule, read and written, four blocks to a head: 30 layers of the
// Qwen3.6-35B-A3B shape take 7.1 us each for 4.2 MB, besides a kernel's time (676.5 tokens/s).
constexpr double kStateRate = 590e9;
// A dense model's networks, which are computed as a single expert: 91 MB a layer in 59 us (the
// Qwen3-8B shape, 313 tokens/s, 0025).
constexpr double kNetworkRate = 1550e9;

// --- experts that may be missing ---

// Looking all of them up and writing the log that the host learns from: a model of random weights
// goes its own way with what it has at 12 GiB, 653 tokens/s, where all in VRAM are 669.7: 38 us in
// 48 layers.
constexpr double kLookupSeconds = 0.8e-6;
// The host begins a copy: 0.06 ms for 24 of them (0023).
constexpr double kCopySeconds = 2.5e-6;
// Kernels read the link in two bursts, gate_up's and down's, each of which takes so long besides
// its bytes. With all misses read, those that a replay of the text finds leave 7.9 us at 8 GiB
// (303.6 tokens/s) and 5.5 at 12 (535.2).
constexpr double kLinkBurstSeconds = 7e-6;
constexpr int kLinkBursts = 2;

// --- a prompt ---

// A layer's kernels begin and end beside each other: alone these take 100 us and more of which that
// much is seen (128 rows: 298 us a layer, 8,951 tokens/s).
constexpr double kWideLayerSeconds = 17e-6;
// Weights that are read and unpacked for products, of the card's rate: 362 MB of a layer's experts
// in 180 us, where the line through 32 to 4,096 rows begins (gpu_wide.md).
constexpr double kUnpackShare = 0.47;
// Products of all rows, in operations for each byte of the card's rate: 164 T/s of experts, 181 of
// the trunk (the slopes of the same lines). llama.cpp was measured at 15, and reported at 29 on an
// RTX 5090.
constexpr double kGpuOpsPerByte = 40.0;
// Attention of many rows: 175 T/s by the groups of warps of sm_90 (a prompt of 2,048 at 8,192
// positions, 12,047 tokens/s); 130 before them.
constexpr double kAttendOpsPerByte = 42.0;
// Of few rows it leaves a part of the card idle: so many operations/s for each row of a head at
// most (a prompt of 128 at 8,192 positions, 3,965 tokens/s: 49 T/s).
constexpr double kAttendRowOps = 12e9;
// Norms, heads, router and sums read and write a row: 0.077 us for each row of 2,048 values.
constexpr double kRowPasses = 40.0;
// A recurrent layer of a prompt: its further kernels, and for each row what the convolution, the
// small projections and the delta rule do to 2.1 MB of state, in bytes of it for each byte of the
// card's rate (0.32 us a row). Two lines for two figures: the Qwen3.6-35B-A3B shape's prompts of
// 512 (14,399 tokens/s) and 2,048 (20,214).
constexpr double kWideRecurrentSeconds = 100e-6;
constexpr double kWideStateShare = 1.5;
// Of the link, what a prompt's waves of experts reach: 19.4 GB in 404 ms (gpu_hybrid.md, 11 GiB,
// with slots still empty).
constexpr double kWaveShare = 0.92;

}  // namespace sluice::policy
