// Products of many rows with weights in stripes, for steps of more than 16 rows: of all rows with
// one matrix, or of pairs of expert and row with their experts'. Bit-equal with quant/ and with the
// kernels of decode steps. Pointers are device memory; nothing here synchronises or allocates.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/int8_rows.h"
#include "backend/cuda/launch.h"
#include "quant/type.h"

namespace sluice::backend::cuda {

// Some pairs of one expert: slots[first .. first + n - 1].
struct WideTile {
  const uint8_t* expert;
  int32_t first;
  int32_t n;
};

// Which rows meet which weights. Either experts' (tiles): input row slot / slots_per_row, output
// row slot. Or n_rows rows of one matrix: input row first_in + r, output row first_out + r.
struct WideRows {
  const WideTile* tiles = nullptr;
  const int32_t* n_tiles = nullptr;  // [1]
  int most_tiles = 0;
  const int32_t* slots = nullptr;
  int slots_per_row = 1;

  int n_rows = 0;
  int64_t first_in = 0;
  int64_t first_out = 0;
};

// A matrix beside another one: its outputs stand behind the other's.
constexpr int kMoreMatrices = 3;
struct WideMatrix {
  const uint8_t* weights;
  const float* bias;
  int n_out;
};

// One matrix's rows to f32, or gate and up through SwiGLU to int8 (where h is set).
struct WideGemm {
  quant::Type type = quant::Type::q4_k;
  int n_cols = 0;
  int n_out = 0;                   // rows of a matrix; n_out % 8 == 0, of gate and up % 32
  const uint8_t* weights[2] = {};  // without tiles: the matrix, or gate and up
  int64_t weights_at[2] = {};      // with tiles: the same, from the expert on
  Int8Rows in;
  WideRows rows;
  int height = 0;  // of a tile, at most: wide_tile_height(), wide_block_height()

  Int8Rows h;
  float* out = nullptr;  // [.., out_stride]
  int out_stride = 0;
  const float* bias = nullptr;  // [n_out], or null
  bool adds = false;            // to what stands in out

  WideMatrix more[kMoreMatrices] = {};  // of the same type, without tiles and h
  int n_more = 0;

  // What it reads was there before the kernel in front of it began, which is a product too: it
  // waits for that one at its end.
  bool begins_beside = false;
};
void wide_gemm(const WideGemm& p, const Launch& how);

// The most rows that a tile of this type has room for on this card.
int wide_tile_height(quant::Type type, const Launch& how);

// The same, with the same bits, by larger tiles: for many rows (wide_block.cu).
void wide_block(const WideGemm& p, const Launch& how);

// As wide_tile_height(); 0 where wide_block() has not this type, or not on this card.
int wide_block_height(quant::Type type, int64_t n_cols, const Launch& how);

// Rows of an expert, on average, from which on wide_block() is the faster one.
int wide_block_rows(const Launch& how);

// What every WideGemm has to be.
void check_wide_gemm(const WideGemm& p);

}  // namespace sluice::backend::cuda
