// gate_up and down on the device against quant/: equal in every bit, for every type and one to 16
// rows, with a shared expert and with rows that another place computed.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/experts.h"

#include "backend/cuda/project.h"
#include "backend/cuda/route.h"
#include "base/error.h"
#include "gpu/device.h"
#include "quant/combine.h"
#include "quant/swiglu.h"

namespace sluice::backend::cuda::test {
namespace {

using ExpertsTest = DeviceTest;

struct Expert {
  Expert(Type gate_up, Type down_type, int d_model, int d_ff, uint64_t seed)
      : gate(gate_up, d_model, d_ff, seed),
        up(gate_up, d_model, d_ff, seed + 1),
        down(down_type, d_ff, d_model, seed + 2) {}

  std::vector<float> hidden(const quant::ActivationView& a) const {
    const auto n = static_cast<size_t>(gate.n_rows);
    std::vector<float> g(n), u(n);
    for (size_t i = 0; i < n; ++i) {
      g[i] = gate.dot(static_cast<int>(i), a);
      u[i] = up.dot(static_cast<int>(i), a);
    }
    quant::swiglu(g, u, g.data());
    return g;
  }

  Weight gate, up, down;
};

struct Case {
  Type gate_up, down;
  int n_rows, n_used, n_experts, d_model, d_ff, shared_d_ff;
  int n_live = 16;

  bool is_live(int row) const { return row < n_live; }
  std::string text() const {
    return cat(type_name(gate_up), " and ", type_name(down), ", ", n_rows, " rows, ", n_used,
               " of ", n_experts, ", d_model ", d_model, ", d_ff ", d_ff, ", shared ", shared_d_ff);
  }
};

// The step's list as route makes it: expert `outside`, if chosen, has no address.
class Step {
 public:
  Step(const Case& c, int outside) : c_(c), outside_(outside) {
    for (int e = 0; e < c.n_experts; ++e) {
      experts_.push_back(std::make_unique<Expert>(c.gate_up, c.down, c.d_model, c.d_ff,
                                                  static_cast<uint64_t>(10 * e)));
    }
    if (c.shared_d_ff > 0) {
      shared_ = std::make_unique<Expert>(c.gate_up, c.down, c.d_model, c.shared_d_ff, 999);
    }
    for (int r = 0; r < c.n_rows; ++r) {
      for (int k = 0; k < c.n_used; ++k) chosen_.push_back((3 * r + k) % c.n_experts);
    }
  }

  int n_slots() const { return c_.n_rows * (c_.n_used + 1); }

  std::vector<ExpertGroup> groups() const {
    std::vector<ExpertGroup> groups;
    for (int e = 0; e < c_.n_experts; ++e) {
      const Expert& expert = *experts_[static_cast<size_t>(e)];
      ExpertGroup group{};
      for (size_t slot = 0; slot < chosen_.size(); ++slot) {
        const int row = static_cast<int>(slot) / c_.n_used;
        if (chosen_[slot] == e && c_.is_live(row)) add(group, row, slot);
      }
      if (e != outside_) set(group, expert);
      if (group.n_pairs > 0) groups.push_back(group);
    }
    if (!shared_) return groups;
    ExpertGroup group{};
    set(group, *shared_);
    for (int r = 0; r < c_.n_rows && c_.is_live(r); ++r) {
      add(group, r, chosen_.size() + static_cast<size_t>(r));
    }
    groups.push_back(group);
    return groups;
  }

  const Expert& of_slot(int slot) const {
    const auto i = static_cast<size_t>(slot);
    return i < chosen_.size() ? *experts_[static_cast<size_t>(chosen_[i])] : *shared_;
  }
  bool is_outside(int slot) const {
    const auto i = static_cast<size_t>(slot);
    return i < chosen_.size() && chosen_[i] == outside_;
  }
  int row_of_slot(int slot) const {
    const int n = c_.n_rows * c_.n_used;
    return slot < n ? slot / c_.n_used : slot - n;
  }

 private:
  static void add(ExpertGroup& group, int row, size_t slot) {
    group.row[group.n_pairs] = static_cast<int16_t>(row);
    group.slot[group.n_pairs++] = static_cast<int16_t>(slot);
  }
  static void set(ExpertGroup& group, const Expert& expert) {
    group.gate = expert.gate.data();
    group.up = expert.up.data();
    group.down = expert.down.data();
  }

  Case c_;
  int outside_;
  std::vector<std::unique_ptr<Expert>> experts_;
  std::unique_ptr<Expert> shared_;
  std::vector<int32_t> chosen_;
};

void check(const Case& c, int outside, const Launch& how) {
  const Step step(c, outside);
  const bool has_shared = c.shared_d_ff > 0;
  const int n_slots = c.n_rows * c.n_used + (has_shared ? c.n_rows : 0);
  const int widest = std::max(c.d_ff, c.shared_d_ff);
  HostInt8 a(c.n_rows, c.d_model), h(step.n_slots(), widest);
  const auto x = random_values(static_cast<size_t>(c.n_rows * c.d_model), 1);
  for (int r = 0; r < c.n_rows; ++r) {
    a.quantize(r, std::span(x).subspan(static_cast<size_t>(r * c.d_model),
                                       static_cast<size_t>(c.d_model)));
  }
  DeviceInt8 device_a(c.n_rows, c.d_model), device_h(step.n_slots(), widest);
  device_a.set(a);
  auto groups = step.groups();
  const Device<int32_t> n_groups(std::vector<int32_t>{static_cast<int32_t>(groups.size())});
  groups.resize(static_cast<size_t>(c.n_rows * c.n_used + 1));  // kernels read what has room
  const Device<ExpertGroup> device_groups(groups);
  const ExpertShape shape{c.gate_up, c.down, c.d_model, c.d_ff, c.shared_d_ff, c.n_used};
  gate_up(
      {shape, c.n_rows, {n_groups.data(), device_groups.data()}, device_a.rows(), device_h.rows()},
      how);

  std::vector<float> rows(static_cast<size_t>(step.n_slots() * c.d_model), 0.5f);
  const auto got_q = device_h.q.get();
  const auto got_d = device_h.d.get();
  for (int slot = 0; slot < n_slots; ++slot) {
    if (!c.is_live(step.row_of_slot(slot))) continue;
    const Expert& expert = step.of_slot(slot);
    HostInt8 one(1, expert.gate.n_rows);
    one.quantize(0, expert.hidden(a.view(step.row_of_slot(slot))));
    for (int i = 0; i < c.d_model; ++i) {
      rows[static_cast<size_t>(slot * c.d_model + i)] = expert.down.dot(i, one.view(0));
    }
    if (step.is_outside(slot)) continue;
    const auto at = static_cast<size_t>(slot * h.n_chunks);
    for (size_t i = 0; i < static_cast<size_t>(one.n_cols); ++i) {
      ASSERT_EQ(one.q[i], got_q[256 * at + i]) << c.text() << ", slot " << slot << ", value " << i;
    }
    for (size_t b = 0; b < static_cast<size_t>(one.n_cols / 32); ++b) {
      ASSERT_EQ(std::bit_cast<uint32_t>(one.d[b]), std::bit_cast<uint32_t>(got_d[8 * at + b]))
          << c.text() << ", slot " << slot << ", scale " << b;
    }
  }

  const auto weights = random_values(static_cast<size_t>(c.n_rows * c.n_used), 2);
  const auto shared_weights = random_values(static_cast<size_t>(c.n_rows), 3);
  const Device<int32_t> n_live(std::vector<int32_t>{c.n_live});
  const Device<float> device_weights(weights), device_shared(shared_weights), device_rows(rows),
      device_x(x);
  down({shape,
        c.n_rows,
        {n_groups.data(), device_groups.data()},
        device_h.rows(),
        device_weights.data(),
        device_shared.data(),
        device_rows.data(),
        device_x.data(),
        c.n_live < c.n_rows ? n_live.data() : nullptr},
       how);
  std::vector<float> want = x;
  for (int r = 0; r < c.n_rows && c.is_live(r); ++r) {
    const auto at = [&](int slot) { return rows.data() + static_cast<int64_t>(slot) * c.d_model; };
    quant::combine(std::span(weights).subspan(static_cast<size_t>(r * c.n_used),
                                              static_cast<size_t>(c.n_used)),
                   at(r * c.n_used), c.d_model, has_shared ? at(c.n_rows * c.n_used + r) : nullptr,
                   shared_weights[static_cast<size_t>(r)],
                   std::span(want).subspan(static_cast<size_t>(r * c.d_model),
                                           static_cast<size_t>(c.d_model)));
  }
  expect_same_bits(want, device_x.get(), c.text());
}

TEST_F(ExpertsTest, EveryTypeToTheBit) {
  for (const Type type : woven_types()) {
    const bool is_super = quant::type_info(type).block_elems == 256;
    const int d_model = is_super ? 512 : 288, d_ff = is_super ? 256 : 96;
    for (const int n_rows : {1, 2, 4, 8, 16}) {
      check({type, type, n_rows, 3, 7, d_model, d_ff, 0}, -1, how);
    }
    check({type, type, 1, 3, 4, d_model, d_ff, d_ff}, -1, how);
    check({type, type, 5, 3, 4, d_model, d_ff, 2 * d_ff}, -1, how);
  }
}

TEST_F(ExpertsTest, RealShapesToTheBit) {
  check({Type::q4_k, Type::q6_k, 1, 8, 9, 2048, 768, 0}, -1, how);
  check({Type::q4_k, Type::q4_k, 3, 8, 9, 2048, 768, 512}, -1, how);
  check({Type::mxfp4, Type::mxfp4, 2, 4, 6, 2880, 2880, 0}, -1, how);
  check({Type::q8_0, Type::q8_0, 16, 4, 6, 512, 1536, 0}, -1, how);
}

// Steps that do not fit into the shared memory of sm_75, or of sm_86, 89 and 120, as they do here.
TEST_F(ExpertsTest, BlocksWithLittleSharedMemoryToTheBit) {
  for (const int kilobytes : {64, 99}) {
    Launch small = with_little_shared(how, kilobytes);
    small.overlaps = false;
    // Of a single row, some warps with two experts; rows of less than a unit and of several.
    for (const Type type : woven_types()) {
      check({type, type, 1, 8, 9, 2048, 768, 256}, -1, small);
      check({type, type, 1, 3, 4, 2048, 2304, 0}, 1, small);
    }
    check({Type::q4_k, Type::q6_k, 16, 8, 20, 2048, 768, 0}, -1, small);
    check({Type::q8_0, Type::q8_0, 8, 4, 9, 2880, 1056, 512}, 2, small);
    check({Type::q6_k, Type::q8_0, 2, 3, 5, 4096, 1280, 0}, -1, small);
    check({Type::mxfp4, Type::mxfp4, 16, 4, 6, 2880, 2880, 0}, -1, small);
  }
}

TEST_F(ExpertsTest, RowsOfAnotherPlaceAreAdded) {
  check({Type::q4_k, Type::q4_k, 1, 3, 5, 512, 256, 0}, 1, how);
  check({Type::q4_k, Type::q6_k, 7, 3, 5, 512, 256, 256}, 2, how);
}

// More items than blocks, several to each, with experts of one row and of many.
TEST_F(ExpertsTest, ManyItemsABlockToTheBit) {
  check({Type::q4_k, Type::q6_k, 6, 4, 22, 512, 3072, 0}, -1, how);
  check({Type::q8_0, Type::q4_0, 3, 3, 12, 512, 3328, 512}, 4, how);
}

// A padded width: rows that are not live are in no group, and keep what stands in x.
TEST_F(ExpertsTest, PaddedRowsStayAsTheyAre) {
  for (const int n_live : {0, 1, 5}) {
    check({Type::q4_k, Type::q6_k, 8, 3, 7, 512, 256, 0, n_live}, -1, how);
    check({Type::q4_k, Type::q4_k, 8, 3, 7, 512, 256, 256, n_live}, -1, how);
  }
}

// Rows whose experts gate_up ranks itself, of a single row also by sums that project_add left: the
// same as by the router's list, bit by bit.
void check_ranking(int n_rows, int n_live, int n_experts, int shared_d_ff, bool has_gate,
                   const Launch& how) {
  SCOPED_TRACE(testing::Message() << n_rows << " rows, " << n_live << " live, " << n_experts
                                  << " experts, shared " << shared_d_ff << ", " << has_gate);
  constexpr int kModel = 512, kFf = 256, kUsed = 6, kAdded = 1024;
  const ExpertShape shape{Type::q4_k, Type::q6_k, kModel, kFf, shared_d_ff, kUsed};
  const Expert shared(Type::q4_k, Type::q6_k, kModel, std::max(shared_d_ff, 256), 77);
  const Weight gate_and_up(Type::q4_k, kModel, 2 * kFf * 4, 1),
      down_rows(Type::q6_k, kFf, 4 * kModel, 2);
  const size_t gate_bytes = kFf * quant::row_bytes(Type::q4_k, kModel),
               down_bytes = kModel * quant::row_bytes(Type::q6_k, kFf);
  // Four experts' weights, in slots of gate, up and down one behind the other.
  const size_t up_at = gate_bytes, down_at = 2 * gate_bytes,
               slot_bytes = (2 * gate_bytes + down_bytes + 255) / 256 * 256;
  std::vector<std::byte> slots(4 * slot_bytes + 256);
  const auto a_bytes = gate_and_up.stripes.get(), b_bytes = down_rows.stripes.get();
  for (size_t e = 0; e < 4; ++e) {
    std::copy_n(a_bytes.begin() + static_cast<int64_t>(2 * gate_bytes * e), 2 * gate_bytes,
                slots.begin() + static_cast<int64_t>(slot_bytes * e));
    std::copy_n(b_bytes.begin() + static_cast<int64_t>(down_bytes * e), down_bytes,
                slots.begin() + static_cast<int64_t>(slot_bytes * e + down_at));
  }
  const Device<std::byte> device_slots(slots);
  const auto* const base = reinterpret_cast<const uint8_t*>(device_slots.data());
  std::vector<const uint8_t*> table;
  for (int e = 0; e < n_experts; ++e) {
    table.push_back(base + slot_bytes * static_cast<size_t>(e % 4));
  }
  const Device<const uint8_t*> device_table(table);

  const auto rows = static_cast<size_t>(n_rows);
  const auto x = random_values(rows * kModel, 3), norm = random_values(kModel, 4),
             router = random_values(static_cast<size_t>(n_experts * kModel), 5, 0.05f),
             shared_gate = random_values(kModel, 6, 0.05f);
  std::vector<float> tied = router;  // experts 40 to 43 have the scores of 4 to 7
  std::copy_n(router.begin() + 4 * kModel, 4 * kModel, tied.begin() + 40 * kModel);
  const Device<float> device_norm_weight(norm), device_router(tied), device_gate(shared_gate);
  const Device<int32_t> device_n_live(std::vector<int32_t>{n_live});
  const Weight added(Type::q4_k, kAdded, kModel, 7);
  HostInt8 host_in(n_rows, kAdded);
  for (int r = 0; r < n_rows; ++r) {
    host_in.quantize(r, random_values(kAdded, 8 + static_cast<uint64_t>(r), 0.01f));
  }
  DeviceInt8 in(n_rows, kAdded);
  in.set(host_in);
  const Device<uint64_t> device_sums(std::vector<uint64_t>(kMostRanked + 1));
  enum class Way { list, scores, sums };
  for (const bool renormalize : {true, false}) {
    std::vector<std::vector<float>> out, weights, shared_weights;
    std::vector<std::vector<int32_t>> experts;
    std::vector<std::vector<int8_t>> inputs;
    for (const Way way : {Way::list, Way::scores, Way::sums}) {
      if (way == Way::sums && n_rows > 1) continue;
      DeviceInt8 a(n_rows, kModel), h(n_rows * (kUsed + 1), std::max(kFf, shared_d_ff));
      const Device<float> device_x(x), device_weights(rows * kUsed), device_shared(rows),
          scores(rows * static_cast<size_t>(n_experts + 1));
      const Device<int32_t> chosen(rows * kUsed), n_groups(1);
      const Device<ExpertGroup> groups(rows * kUsed + 1);
      const Device<unsigned> n_done(std::vector<unsigned>{0});
      Route p;
      p.x = device_x.data();
      p.norm = device_norm_weight.data();
      p.eps = 1e-6f;
      p.n_rows = n_rows;
      p.d_model = kModel;
      if (n_live < n_rows) p.n_live = device_n_live.data();
      p.weight = device_router.data();
      p.n_experts = n_experts;
      p.n_used = kUsed;
      p.renormalize = renormalize;
      p.ranks = way == Way::list;
      p.table = device_table.data();
      p.up_at = static_cast<int64_t>(up_at);
      p.down_at = static_cast<int64_t>(down_at);
      if (shared_d_ff > 0) {
        p.shared[0] = shared.gate.data(), p.shared[1] = shared.up.data();
        p.shared[2] = shared.down.data();
        p.shared_gate = has_gate ? device_gate.data() : nullptr;
        p.shared_weights = device_shared.data();
      }
      p.a = a.rows();
      p.experts = chosen.data();
      p.weights = device_weights.data();
      p.list = {n_groups.data(), groups.data()};
      p.scores = scores.data();
      p.n_done = n_done.data();
      ASSERT_TRUE(can_rank_later(p));
      Ranking ranking = p.ranks ? Ranking{} : ranking_of(p);
      ProjectAdd add{
          in.rows(), n_rows, kAdded, {added.type, added.data(), kModel}, device_x.data()};
      if (way == Way::sums) {
        add.scores = {device_sums.data(), p.norm,        kModel,     p.type,
                      p.weight,           p.shared_gate, p.n_experts};
        ranking.sums = device_sums.data(), ranking.x = p.x, ranking.norm = p.norm,
        ranking.eps = p.eps;
      }
      project_add(add, how);
      const auto before = device_x.get();
      if (way != Way::sums) route(p, how);
      gate_up({shape, n_rows, p.list, a.rows(), h.rows(), ranking}, how);
      Down last{shape,   n_rows,          p.list,  h.rows(), p.weights, p.shared_weights,
                nullptr, device_x.data(), p.n_live};
      last.sums = ranking.sums, last.n_sums = kMostRanked + 1;
      if (way != Way::sums) last.n_sums = 0;
      down(last, how);
      out.push_back(device_x.get());
      inputs.push_back(a.q.get());
      EXPECT_EQ(n_live == 0, out.back() == before);
      EXPECT_EQ(device_sums.get(), std::vector<uint64_t>(kMostRanked + 1)) << "not zero again";
      weights.push_back(device_weights.get());
      shared_weights.push_back(device_shared.get());
      experts.push_back(chosen.get());
    }
    for (size_t way = 1; way < out.size(); ++way) {
      EXPECT_EQ(experts[0], experts[way]);
      EXPECT_EQ(inputs[0], inputs[way]);
      expect_same_bits(weights[0], weights[way], "weights");
      expect_same_bits(shared_weights[0], shared_weights[way], "the shared expert's weight");
      expect_same_bits(out[0], out[way], "output");
    }
  }
}

TEST_F(ExpertsTest, RankedByTheKernelsAsByTheList) {
  for (const int n_rows : {1, 2, 3, 8, 16}) {
    for (const int n_experts : {100, 128, 129, 256}) {
      check_ranking(n_rows, n_rows, n_experts, 0, false, how);
      check_ranking(n_rows, n_rows, n_experts, 512, true, how);
      check_ranking(n_rows, n_rows, n_experts, 256, false, how);
    }
  }
}

TEST_F(ExpertsTest, RankedAsByTheListWithLittleSharedMemory) {
  Launch small = with_little_shared(how, 64);
  small.overlaps = false;
  for (const int n_experts : {100, 256}) check_ranking(1, 1, n_experts, 256, true, small);
}

TEST_F(ExpertsTest, RowsThatAreNotLiveAreRankedInNoGroup) {
  for (const int n_live : {0, 1, 5}) {
    check_ranking(8, n_live, 128, 0, false, how);
    check_ranking(8, n_live, 100, 256, true, how);
  }
}

}  // namespace
}  // namespace sluice::backend::cuda::test
