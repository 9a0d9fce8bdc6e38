// How much of a model the kernels of GPUs can take; whoever plans for one asks here first.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace sluice::backend {

constexpr int kGpuMostHeads = 256;
constexpr int kGpuMostStateDim = 128;  // of a recurrent layer's heads
constexpr int kGpuMostExperts = 1024;  // of a layer
constexpr int kGpuMostUsed = 16;       // of them, by a row
constexpr int kGpuMostRows = 16;       // of a step
constexpr int kGpuWideRows = 4096;     // where experts are quantised, gate and up by the same type

}  // namespace sluice::backend
