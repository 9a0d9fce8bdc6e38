// The experts of steps of more than 16 rows: pairs sorted, computed and summed as the CPU does it,
// equal in every bit, for every type and for routings that are as uneven as can be.
// SPDX-License-Identifier: Apache-2.0
#include "backend/mailbox.h"
#include "gpu/ops_test.h"

namespace sluice::backend::cuda::test {
namespace {

constexpr uint32_t kStep = 7;
constexpr LayerId kLayer{3};

// Who chose whom: [n_rows, n_used].
struct Choices {
  int n_rows, n_used, n_experts;
  std::vector<int32_t> experts;

  std::string text() const { return cat(n_rows, " rows, ", n_used, " of ", n_experts); }
};

Choices even_choices(int n_rows, int n_used, int n_experts) {
  Choices c{n_rows, n_used, n_experts, {}};
  for (int r = 0; r < n_rows; ++r) {
    for (int k = 0; k < n_used; ++k) c.experts.push_back((5 * r + r / 3 + k) % n_experts);
  }
  return c;
}

// The first n rows choose expert `hot`, all others `cold`; the second choice is the one behind.
Choices uneven_choices(int n_rows, int n, int hot, int cold, int n_experts) {
  Choices c{n_rows, 2, n_experts, {}};
  for (int r = 0; r < n_rows; ++r) {
    const int first = r < n ? hot : cold;
    c.experts.push_back(first);
    c.experts.push_back((first + 1) % n_experts);
  }
  return c;
}

class WideExpertsTest : public OpsTest {
 protected:
  static RoutingView routing(Side& side, const Choices& c) {
    return {c.n_used, side.put(c.experts), side.put(random_values(c.experts.size(), 21)),
            side.put(random_values(count(c.n_rows), 22))};
  }

  // How the device sorts, and what it says of it: checked against the definition.
  SortedPairs sorted(const ExpertsView& experts, const RoutingView& routes, const Choices& c) {
    const size_t n = c.experts.size(), n_experts = count(c.n_experts);
    const SortedPairs pairs{c.n_used, gpu->put(std::vector<int32_t>(n_experts + 1, -1)),
                            gpu->put(std::vector<int32_t>(n, -1))};
    mapped.push_back(device->allocate(MemoryKind::mapped, n_experts * 4));
    auto* const n_pairs = mapped.back().as<int32_t>();
    mapped.push_back(device->allocate(MemoryKind::mapped, 8));
    auto* const told = mapped.back().as<uint64_t>();
    gpu_ops->sort_pairs(experts,
                        {kLayer, gpu->put(std::vector<uint32_t>{kStep}), pairs, n_pairs, told},
                        routes, c.n_rows);
    stream->finish();
    std::vector<int32_t> want, first{0};
    for (int e = 0; e < c.n_experts; ++e) {
      for (size_t s = 0; s < n; ++s) {
        if (c.experts[s] == e) want.push_back(static_cast<int32_t>(s));
      }
      first.push_back(static_cast<int32_t>(want.size()));
      EXPECT_EQ(n_pairs[e], first.back() - first[first.size() - 2]) << c.text() << ", expert " << e;
    }
    EXPECT_EQ(gpu->get(pairs.slots, n), want) << c.text();
    EXPECT_EQ(gpu->get(pairs.first, n_experts + 1), first) << c.text();
    EXPECT_EQ(*told, request_number(kStep, kLayer));
    return pairs;
  }

  // The sum, and what it writes down of the routing.
  void add(const ExpertsView& experts, const RoutingView& routes, const Choices& c, RowsView x) {
    const size_t n = c.experts.size();
    mapped.push_back(device->allocate(MemoryKind::mapped, sizeof(LayerLog)));
    auto* const log = mapped.back().as<LayerLog>();
    log->n_cpu = 5;
    mapped.push_back(device->allocate(MemoryKind::mapped, n * sizeof(RoutedExpert)));
    auto* const routed = mapped.back().as<RoutedExpert>();
    gpu_ops->add_sorted(experts, routes, {log, routed}, x);
    stream->finish();
    EXPECT_EQ(log->n_rows, c.n_rows) << c.text();
    EXPECT_EQ(log->n_cpu, 0) << c.text();
    const auto weights = random_values(n, 21);
    for (size_t s = 0; s < n; ++s) {
      EXPECT_EQ(routed[s].expert, ExpertId(c.experts[s])) << c.text();
      EXPECT_EQ(routed[s].weight, weights[s]) << c.text();
    }
  }

  // The experts of a layer as the CPU computes them.
  std::vector<float> on_cpu(TinyModel& model, const Choices& c, int64_t d) {
    const RowsView x{host.put(random_values(count(c.n_rows * d), 23)), c.n_rows, d};
    cpu_ops->experts(model.experts(0), expert_rows(host, c.n_rows, d), routing(host, c), x);
    return host.get(x.data, count(c.n_rows * d));
  }

  // In two waves: experts whose number is even, then the others. The shared one comes with the
  // first.
  std::vector<float> on_gpu(TinyModel& model, const Choices& c, int64_t d) {
    const RowsView x{gpu->put(random_values(count(c.n_rows * d), 23)), c.n_rows, d};
    const RoutingView routes = routing(*gpu, c);
    ExpertsView experts = model.experts(0);
    const SortedPairs pairs = sorted(experts, routes, c);
    const auto table = gpu->get(experts.table, count(c.n_experts));
    const ExpertInputView a = expert_rows(*gpu, c.n_rows, d);
    for (const size_t wave : {size_t{0}, size_t{1}}) {
      std::vector<const std::byte*> some = table;
      for (size_t e = 1 - wave; e < some.size(); e += 2) some[e] = nullptr;
      ExpertsView arriving = experts;
      arriving.table = gpu->put(some);
      if (wave == 1) arriving.shared_gate = {};
      gpu_ops->compute_sorted(arriving, pairs, a);
    }
    add(experts, routes, c, x);
    return gpu->get(x.data, count(c.n_rows * d));
  }

  void check(const TinyShape& shape, const std::vector<Choices>& cases) {
    TinyModel here(shape, host), there(shape, *gpu);
    for (const Choices& c : cases) {
      expect_same_bits(on_cpu(here, c, shape.d_model), on_gpu(there, c, shape.d_model),
                       cat(quant::type_name(shape.gate_up), " and ", quant::type_name(shape.down),
                           ", ", c.text()));
    }
  }

  std::list<Buffer> mapped;
};

TinyShape shape_of(Type gate_up, Type down, int shared_d_ff) {
  const auto is_super = [](Type t) { return quant::type_info(t).block_elems == 256; };
  TinyShape shape;
  shape.attention = shape.out = shape.output = Type::q8_0;  // of no matter here
  shape.gate_up = gate_up;
  shape.down = down;
  shape.d_model = is_super(gate_up) ? 512 : 288;  // no whole number of chunks, nor of items
  shape.d_ff = is_super(down) ? 256 : 96;
  shape.shared_d_ff = shared_d_ff;
  return shape;
}

TEST_F(WideExpertsTest, EveryTypeIsAsOnTheCpu) {
  for (const Type type : woven_types()) {
    check(shape_of(type, type, 0), {even_choices(77, 2, 8), uneven_choices(40, 37, 2, 6, 8)});
  }
}

TEST_F(WideExpertsTest, TypesMayDifferAndASharedExpertMayBeWider) {
  check(shape_of(Type::q4_k, Type::q6_k, 512), {even_choices(33, 3, 8)});
  check(shape_of(Type::q8_0, Type::q4_k, 256), {even_choices(33, 3, 8)});
  check(shape_of(Type::q6_k, Type::q5_1, 160), {even_choices(150, 4, 8)});
}

TEST_F(WideExpertsTest, AnyNumberOfRowsAndAnyRoutingIsAsOnTheCpu) {
  std::vector<Choices> cases;
  for (int n_rows = 1; n_rows <= 17; ++n_rows) cases.push_back(even_choices(n_rows, 2, 8));
  cases.push_back(uneven_choices(72, 72, 0, 0, 8));  // one expert has all rows, and six have none
  cases.push_back(uneven_choices(72, 69, 7, 3, 8));
  cases.push_back(uneven_choices(65, 64, 1, 5, 8));
  cases.push_back({130, 1, 8, std::vector<int32_t>(130, 4)});
  cases.push_back({129, 2, 8, std::vector<int32_t>(258, 6)});  // twice by each row
  check(shape_of(Type::q4_k, Type::q8_0, 64), cases);
}

// By the one operation that steps of 16 rows have too.
TEST_F(WideExpertsTest, AllAtOnceIsAsOnTheCpu) {
  const TinyShape shape = shape_of(Type::q4_0, Type::q5_k, 256);
  TinyModel here(shape, host), there(shape, *gpu);
  const Choices c = even_choices(50, 3, 8);
  const int64_t d = shape.d_model;
  const RowsView x{gpu->put(random_values(count(c.n_rows * d), 23)), c.n_rows, d};
  gpu_ops->experts(there.experts(0), expert_rows(*gpu, c.n_rows, d), routing(*gpu, c), x);
  stream->finish();
  expect_same_bits(on_cpu(here, c, d), gpu->get(x.data, count(c.n_rows * d)), c.text());
}

}  // namespace
}  // namespace sluice::backend::cuda::test
