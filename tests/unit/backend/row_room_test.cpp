// What kernels of a single row ask of shared memory (backend/cuda/row_room.h): that every type's
// experts fit on every card, and that the cards with much memory get whole units.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/row_room.h"

#include <gtest/gtest.h>

namespace sluice::backend::cuda {
namespace {

constexpr Type kTypes[] = {Type::q4_0,   Type::q4_1,   Type::q5_0, Type::q5_1, Type::q8_0,
                           Type::q2_k,   Type::q3_k,   Type::q4_k, Type::q5_k, Type::q6_k,
                           Type::iq4_nl, Type::iq4_xs, Type::mxfp4};
// That a block may have, the kernel's own included: sm_75; sm_86, 89 and 120; sm_90.
constexpr int kTuring = 64 << 10, kAda = 99 << 10, kHopper = 227 << 10;

RowRing ring_of(Type type, int most_chunks, int n_slots, int room) {
  RowRing ring{};
  with_stripe_type(type, [&]<Type t>() { ring = row_ring<t>(most_chunks, n_slots, room); });
  return ring;
}

TEST(RowRoom, ExpertsOfEveryTypeFitOnEveryCard) {
  for (const int shared_bytes : {kTuring, kAda, kHopper}) {
    for (const Type type : kTypes) {
      for (const int n_cols : {256, 2048, 4096, 8192}) {
        const int n_chunks = row_shape(n_cols).n_chunks, row = staged_row_bytes(n_chunks);
        for (const int n_slots : {1, 2}) {
          const int room = row_room(shared_bytes) - row;
          for (const int chunks : {n_chunks, kUnitChunks}) {
            const RowRing ring = ring_of(type, chunks, n_slots, room);
            EXPECT_LE(ring.n_bytes(), room)
                << quant::type_name(type) << ", " << n_cols << " columns of " << shared_bytes;
            EXPECT_GE(ring.size.n_slots, 1);
            EXPECT_LE(ring.size.n_slots, n_slots);
            EXPECT_TRUE(ring.is_roomy() || ring.unit_chunks == kUnitChunks / 2);
          }
        }
      }
    }
  }
}

TEST(RowRoom, CardsWithMuchMemoryHaveWholeUnits) {
  for (const Type type : kTypes) {
    const RowRing ring = ring_of(type, kUnitChunks, 2, row_room(kHopper) - staged_row_bytes(32));
    EXPECT_TRUE(ring.is_roomy()) << quant::type_name(type);
    EXPECT_EQ(ring.size.n_slots, 2) << quant::type_name(type);
    EXPECT_LE(project_row_bytes(type, kMostRowColumns), row_room(kHopper));
  }
}

// By bytes: units of four chunks of Q4_K are 4,608, of Q8_0 8,704; a slot has a line more.
TEST(RowRoom, LittleMemoryHasHalfUnitsOrOneSlot) {
  const RowRing q4_k = ring_of(Type::q4_k, kUnitChunks, 2, row_room(kTuring) - staged_row_bytes(8));
  EXPECT_EQ(q4_k.unit_chunks, 2);
  EXPECT_EQ(q4_k.size.n_slots, 2);
  EXPECT_EQ(q4_k.size.slot_size, 2304 + 128);
  const RowRing q8_0 = ring_of(Type::q8_0, kUnitChunks, 2, row_room(kTuring) - staged_row_bytes(8));
  EXPECT_EQ(q8_0.unit_chunks, 2);
  EXPECT_EQ(q8_0.size.n_slots, 1);
  const RowRing q6_k = ring_of(Type::q6_k, kUnitChunks, 2, row_room(kAda) - staged_row_bytes(8));
  EXPECT_EQ(q6_k.unit_chunks, 2);
  EXPECT_EQ(q6_k.size.n_slots, 2);
  // A row of three chunks needs no more than these.
  EXPECT_EQ(ring_of(Type::q8_0, 3, 1, row_room(kTuring)).size.slot_size, 6528 + 128);
}

TEST(RowRoom, ProjectionsOfOneRowFitOnTuringButForQ8_0) {
  for (const Type type : kTypes) {
    EXPECT_EQ(project_row_bytes(type, 2048) <= row_room(kTuring), type != Type::q8_0)
        << quant::type_name(type);
    EXPECT_LE(project_row_bytes(type, 2048), row_room(kAda)) << quant::type_name(type);
  }
}

}  // namespace
}  // namespace sluice::backend::cuda
