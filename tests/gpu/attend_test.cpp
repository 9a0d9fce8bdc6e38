// attend on the device against float64, with the keys and values as its cache holds them: within a
// derived bound. What it appended is within the rounding of the cache's type. A row's bytes do not
// depend on the rows beside it.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/attend.h"

#include "base/error.h"
#include "gpu/device.h"
#include "quant/half.h"

namespace sluice::backend::cuda::test {
namespace {

using AttendTest = DeviceTest;
constexpr double kU = 0x1p-24;  // of one rounding
// Of a tensor core's product: 17 numbers are added with 24 bits at least, each cut, not rounded.
constexpr double kProduct = 34;
constexpr int kPageTokens = 64;
constexpr float kEps = 1e-6f;

struct Row {
  int sequence, position;
};

struct Case {
  Type type;
  int n_heads, n_kv_heads, head_dim, n_pairs;
  NormOfHeads norm;
  bool adjacent;
  std::vector<Row> rows;
  int n_live = -1;  // all

  int qkv_cols() const { return (n_heads + 2 * n_kv_heads) * head_dim; }
  std::string text() const {
    return cat(type_name(type), ", ", n_heads, "/", n_kv_heads, " heads of ", head_dim, ", ",
               rows.size(), " rows, first at ", rows[0].position);
  }
};

size_t at(int64_t i) { return static_cast<size_t>(i); }

class Check {
 public:
  Check(const Case& c, const Launch& how, int most_polls = Attend{}.most_polls)
      : c_(c), most_polls_(most_polls) {
    for (const Row& row : c.rows) {
      n_sequences_ = std::max(n_sequences_, row.sequence + 1);
      n_pages_each_ = std::max(n_pages_each_, row.position / kPageTokens + 1);
    }
    for (int i = 0; i < n_sequences_ * n_pages_each_; ++i) {  // pages in a scattered order
      table_.push_back(n_sequences_ * n_pages_each_ - 1 - i);
    }
    const size_t n = table_.size() * at(c.n_kv_heads) * kPageTokens * at(c.head_dim);
    k_ = stored(random_values(n, 11));
    v_ = stored(random_values(n, 12));
    for (size_t r = 0; r < c.rows.size(); ++r) {
      // Of the row's own place, so that a row has the same values whatever is beside it.
      const auto values = random_values(at(c.qkv_cols()), at(100 + c.rows[r].position));
      qkv_.insert(qkv_.end(), values.begin(), values.end());
      for (int j = 0; j < c.n_pairs; ++j) angles_.push_back(std::cos(angle(c.rows[r], j)));
      for (int j = 0; j < c.n_pairs; ++j) angles_.push_back(std::sin(angle(c.rows[r], j)));
    }
    norm_ = random_values(at((c.n_heads + c.n_kv_heads) * c.head_dim), 13);
    run(how);
  }

  const std::vector<float>& out() const { return out_; }
  const std::vector<uint16_t>& keys() const { return k_; }
  const std::vector<uint16_t>& values() const { return v_; }

  // The row's own key and value, as they stand in the cache.
  void appended() const {
    for (size_t r = 0; r < c_.rows.size(); ++r) {
      for (int h = 0; h < c_.n_kv_heads; ++h) {
        for (const bool is_v : {false, true}) {
          const auto want = is_v ? value_head(r, h) : turned_head(r, c_.n_heads + h);
          for (int i = 0; i < c_.head_dim; ++i) {
            const double got = number((is_v ? v_ : k_)[cache_at(c_.rows[r], h, i)]);
            const double step = c_.type == Type::f16 ? 0x1p-11 : 0x1p-8;
            const double bound = step * std::abs(got) + want[at(i)].error + 0x1p-25;
            ASSERT_LE(std::abs(got - want[at(i)].value), bound)
                << c_.text() << ", row " << r << ", head " << h << ", dimension " << i;
          }
        }
      }
    }
  }

  void attended() const {
    for (size_t r = 0; r < c_.rows.size(); ++r) {
      for (int h = 0; h < c_.n_heads; ++h) check_head(r, h);
    }
  }

  // What the projection behind reads: the quantised form of the same numbers.
  void quantised() const {
    HostInt8 want(static_cast<int>(c_.rows.size()), c_.n_heads * c_.head_dim);
    for (size_t r = 0; r < c_.rows.size(); ++r) {
      const auto n = at(c_.n_heads * c_.head_dim);
      want.quantize(static_cast<int>(r), std::span(out_).subspan(r * n, n));
    }
    expect_same_int8(want, *int8_, static_cast<int>(c_.rows.size()), c_.text());
  }

 private:
  struct Bounded {
    double value, error;
  };

  static float angle(const Row& row, int j) {
    return static_cast<float>(std::fmod(row.position * std::pow(1e-4, j / 64.0), 6.28));
  }
  std::vector<uint16_t> stored(const std::vector<float>& values) const {
    std::vector<uint16_t> bits;
    for (const float v : values) {
      bits.push_back(c_.type == Type::f16 ? quant::f32_to_f16(v) : quant::f32_to_bf16(v));
    }
    return bits;
  }
  double number(uint16_t bits) const {
    return c_.type == Type::f16 ? quant::f16_to_f32(bits) : quant::bf16_to_f32(bits);
  }
  size_t cache_at(const Row& row, int kv_head, int i) const {
    const int64_t page = table_[at(row.sequence * n_pages_each_ + row.position / kPageTokens)];
    return at(((page * c_.n_kv_heads + kv_head) * kPageTokens + row.position % kPageTokens) *
                  c_.head_dim +
              i);
  }
  double input(size_t r, int head, int i) const {
    return qkv_[r * at(c_.qkv_cols()) + at(head * c_.head_dim + i)];
  }
  std::vector<Bounded> value_head(size_t r, int h) const {
    std::vector<Bounded> out;
    for (int i = 0; i < c_.head_dim; ++i) {
      out.push_back({input(r, c_.n_heads + c_.n_kv_heads + h, i), 0});
    }
    return out;
  }

  // Head `head` of q and k (which stands behind q), normalised and turned.
  std::vector<Bounded> turned_head(size_t r, int head) const {
    const bool is_q = head < c_.n_heads, is_whole = c_.norm == NormOfHeads::whole;
    const int first = is_q ? 0 : c_.n_heads, n = is_q ? c_.n_heads : c_.n_kv_heads;
    double squares = 0;
    const int from = is_whole ? first : head, to = is_whole ? first + n : head + 1;
    for (int h = from; h < to; ++h) {
      for (int i = 0; i < c_.head_dim; ++i) squares += input(r, h, i) * input(r, h, i);
    }
    const int n_values = (to - from) * c_.head_dim;
    const double scale = 1 / std::sqrt(squares / n_values + kEps);
    // The sum's chain of n / 32 and tree of 5, halved by the root; five roundings behind it.
    const double relative = ((n_values / 32 + 8) / 2.0 + 5) * kU;
    std::vector<Bounded> x;
    for (int i = 0; i < c_.head_dim; ++i) {
      const double v = input(r, head, i);
      const double w = norm_[at((is_q ? 0 : c_.n_heads * c_.head_dim) +
                                (is_whole ? (head - first) * c_.head_dim : 0) + i)];
      x.push_back(c_.norm == NormOfHeads::none
                      ? Bounded{v, 0}
                      : Bounded{v * scale * w, relative * std::abs(v * scale * w)});
    }
    for (int j = 0; j < c_.n_pairs; ++j) {
      Bounded& a = x[at(c_.adjacent ? 2 * j : j)];
      Bounded& b = x[at(c_.adjacent ? 2 * j + 1 : j + c_.n_pairs)];
      const double cos = angles_[r * at(2 * c_.n_pairs) + at(j)];
      const double sin = angles_[r * at(2 * c_.n_pairs) + at(c_.n_pairs + j)];
      const double size = std::abs(a.value) + std::abs(b.value);
      const double error = a.error + b.error + 3 * kU * size;
      const double x0 = a.value, x1 = b.value;
      a = {x0 * cos - x1 * sin, error};
      b = {x0 * sin + x1 * cos, error};
    }
    return x;
  }

  void check_head(size_t r, int head) const {
    const Row row = c_.rows[r];
    const int kv_head = head / (c_.n_heads / c_.n_kv_heads), length = row.position + 1;
    const auto q = turned_head(r, head);
    const double scale = 1 / std::sqrt(double(c_.head_dim));
    std::vector<double> scores;
    double peak = -1e300, error = 0, largest = 0;
    for (const Bounded& number : q) largest = std::max(largest, std::abs(number.value));
    for (int t = 0; t < length; ++t) {
      double dot = 0, size = 0, from_q = 0, all_keys = 0;
      for (int i = 0; i < c_.head_dim; ++i) {
        const double k = number(k_[cache_at({row.sequence, t}, kv_head, i)]);
        dot += q[at(i)].value * k;
        size += std::abs(q[at(i)].value * k);
        from_q += q[at(i)].error * std::abs(k);
        all_keys += std::abs(k);
      }
      scores.push_back(dot * scale);
      peak = std::max(peak, dot * scale);
      // Two chains of products of a tensor core, head_dim / 16 in all (of bf16 twice as many), and
      // three sums of those; q's own scaling and its two parts, of which the second has steps of
      // 2^-24 of the largest number.
      error = std::max(error, (((c_.head_dim / 16 + 2) * kProduct + 8) * kU * size + from_q +
                               kU * largest * all_keys) *
                                  scale);
    }
    double sum = 0, spread = 0;
    for (const double s : scores) {
      sum += std::exp(s - peak);
      spread = std::max(spread, peak - s);
    }
    // An exponential errs by twice a score's error, the rounding of the difference and 3 roundings;
    // sums by their longest chain: a warp's products (and as many scalings), one for each tile of
    // its split, then warps and splits, the weights' two parts and quotient.
    const double weight = 2 * error + (spread + 3) * kU;
    const double n_tiles = 2 * (std::max(length / 32.0, 128.0) / 128 + 2);  // two of bf16
    const double chain = (n_tiles * (kProduct + 1) + 10 + 32 + 4 + 8) * kU;
    for (int i = 0; i < c_.head_dim; ++i) {
      double value = 0, size = 0;
      for (int t = 0; t < length; ++t) {
        const double v = number(v_[cache_at({row.sequence, t}, kv_head, i)]);
        const double p = std::exp(scores[at(t)] - peak) / sum;
        value += p * v;
        size += p * std::abs(v);
      }
      const double bound = 2 * (weight + chain) * size;
      const float got = out_[r * at(c_.n_heads * c_.head_dim) + at(head * c_.head_dim + i)];
      ASSERT_LE(std::abs(got - value), bound) << c_.text() << ", row " << r << ", head " << head
                                              << ", dimension " << i << ", expected " << value;
      ASSERT_LT(bound, 0.01 * size + 1e-6) << "the bound shows nothing";
    }
  }

  void run(const Launch& how) {
    const auto n_rows = static_cast<int>(c_.rows.size());
    std::vector<int32_t> positions, sequences;
    for (const Row& row : c_.rows) {
      positions.push_back(row.position);
      sequences.push_back(row.sequence);
    }
    const Device<float> qkv(qkv_), angles(angles_), norm(norm_),
        out(at(n_rows * c_.n_heads * c_.head_dim)),
        partials(at(attend_partials(n_rows, c_.n_heads, c_.head_dim)));
    const Device<int32_t> device_positions(positions), device_sequences(sequences), table(table_);
    const Device<uint16_t> k(k_), v(v_);
    const Device<unsigned long long> met(
        std::vector<unsigned long long>(at(n_rows * c_.n_heads), 0));
    int8_ = std::make_unique<DeviceInt8>(n_rows, c_.n_heads * c_.head_dim);
    Attend p;
    p.qkv = qkv.data();
    p.n_rows = n_rows;
    p.n_heads = c_.n_heads;
    p.n_kv_heads = c_.n_kv_heads;
    p.head_dim = c_.head_dim;
    p.head_norm = c_.norm;
    p.q_norm = norm.data();
    p.k_norm = norm.data() + c_.n_heads * c_.head_dim;
    p.eps = kEps;
    p.angles = angles.data();
    p.n_pairs = c_.n_pairs;
    p.pairs_are_adjacent = c_.adjacent;
    p.positions = device_positions.data();
    p.sequences = device_sequences.data();
    const Device<int32_t> n_live(std::vector<int32_t>{c_.n_live});
    if (c_.n_live >= 0) p.n_live = n_live.data();
    p.page_table = table.data();
    p.table_stride = n_pages_each_;
    p.page_shift = 6;
    p.max_length = n_pages_each_ * kPageTokens;
    p.kv_type = c_.type;
    p.k = reinterpret_cast<uint8_t*>(k.data());
    p.v = reinterpret_cast<uint8_t*>(v.data());
    p.out = out.data();
    p.out_int8 = int8_->rows();
    p.partials = partials.data();
    p.met = met.data();
    p.most_polls = most_polls_;
    for (int i = 0; i < 2; ++i) attend(p, how);  // counters go on from where they are
    for (const auto word : met.get()) EXPECT_EQ(word << 26, 0) << "a round that is not over";
    out_ = out.get();
    k_ = k.get();
    v_ = v.get();
  }

  Case c_;
  int most_polls_;
  int n_sequences_ = 0, n_pages_each_ = 0;
  std::vector<int32_t> table_;
  std::vector<uint16_t> k_, v_;
  std::vector<float> qkv_, angles_, norm_, out_;
  std::unique_ptr<DeviceInt8> int8_;
};

void check_all(const Case& c, const Launch& how) {
  const Check check(c, how);
  check.appended();
  check.attended();
  check.quantised();
}

TEST_F(AttendTest, EveryLengthWithinTheBound) {
  for (const int position : {0, 4, 31, 63, 64, 65, 300, 1000, 2100}) {
    check_all({Type::f16, 32, 4, 128, 64, NormOfHeads::per_head, false, {{0, position}}}, how);
  }
  check_all({Type::bf16, 32, 4, 128, 64, NormOfHeads::per_head, false, {{0, 700}}}, how);
  check_all({Type::f16, 16, 2, 128, 64, NormOfHeads::per_head, false, {{0, 9000}}}, how);
}

TEST_F(AttendTest, EveryShapeWithinTheBound) {
  for (const Type type : {Type::f16, Type::bf16}) {
    const std::vector<Row> rows = {{0, 150}, {1, 7}};
    check_all({type, 4, 4, 64, 32, NormOfHeads::none, true, rows}, how);
    check_all({type, 16, 1, 256, 32, NormOfHeads::whole, false, rows}, how);
    check_all({type, 6, 2, 96, 48, NormOfHeads::per_head, true, rows}, how);
    check_all({type, 10, 2, 160, 80, NormOfHeads::whole, false, rows}, how);
    check_all({type, 8, 8, 32, 8, NormOfHeads::per_head, false, rows}, how);
  }
}

TEST_F(AttendTest, OnCardsWithLessSharedMemory) {
  Launch small = with_little_shared(how, 64);
  for (const Type type : {Type::f16, Type::bf16}) {
    check_all({type, 32, 4, 128, 64, NormOfHeads::per_head, false, {{0, 300}, {1, 90}}}, small);
    check_all({type, 6, 2, 96, 48, NormOfHeads::per_head, true, {{0, 150}}}, small);
    check_all({type, 16, 1, 256, 32, NormOfHeads::whole, false, {{0, 200}, {1, 90}}}, small);
  }
  small = with_little_shared(how, 99);
  for (const Type type : {Type::f16, Type::bf16}) {
    check_all({type, 16, 1, 256, 32, NormOfHeads::whole, false, {{0, 200}}}, small);
  }
}

TEST_F(AttendTest, RowsOfOneSequenceSeeEachOther) {
  std::vector<Row> rows = {{0, 130}};
  for (int i = 0; i < 13; ++i) rows.push_back({1, 58 + i});
  rows.push_back({2, 0});
  rows.push_back({2, 1});
  const Case c{Type::f16, 16, 2, 128, 64, NormOfHeads::per_head, false, rows};
  check_all(c, how);
}

TEST_F(AttendTest, ARowsBytesDoNotDependOnTheRowsBeside) {
  const std::vector<Row> rows = {{0, 130}, {1, 600}, {2, 5}};
  const Case together{Type::f16, 16, 2, 128, 64, NormOfHeads::per_head, false, rows};
  const auto all = Check(together, how).out();
  Case alone = together;
  alone.rows = {rows[1]};
  alone.rows[0].sequence = 1;
  // The same pages: sequence 0 and 2 exist in the table, whether they have rows or not.
  alone.rows.insert(alone.rows.begin(), {2, 599});
  const auto one = Check(alone, how).out();
  const size_t n = one.size() / 2;
  expect_same_bits(std::span(all).subspan(n, n), std::span(one).subspan(n, n), "row of 600");
}

// The blocks of a row together, the last of them, or whoever of them does not wait long enough.
TEST_F(AttendTest, TheSameBitsWhoeverAddsTheSplits) {
  Launch by_last = how;
  by_last.n_sms = 0;
  for (const int position : {130, 300, 1000, 4100}) {
    for (const int head_dim : {64, 96, 128, 256}) {
      const int n_heads = 2 * (position % 7 + 2), n_pairs = head_dim / 2;
      const Case c{Type::f16, n_heads,        2, head_dim, n_pairs, NormOfHeads::per_head,
                   false,     {{0, position}}};
      const Check together(c, how), one(c, by_last);
      expect_same_bits(one.out(), together.out(), c.text());
      together.quantised();
      for (const int most_polls : {0, 1, 3}) {
        const Check left(c, how, most_polls);
        expect_same_bits(one.out(), left.out(), cat(c.text(), ", ", most_polls, " polls"));
        left.quantised();
      }
    }
  }
}

TEST_F(AttendTest, RowsThatAreNotLiveAreZeroAndStoreNothing) {
  Case c{Type::f16, 16, 2, 128, 64, NormOfHeads::per_head, false, {{0, 130}, {1, 300}, {2, 70}}, 2};
  const Check padded(c, how);
  c.rows[2].position = 71;  // stores elsewhere: only what the live rows do must be the same
  c.n_live = -1;
  const Check all(c, how);
  const size_t n = all.out().size() / 3;
  expect_same_bits(std::span(all.out()).first(2 * n), std::span(padded.out()).first(2 * n), "live");
  EXPECT_EQ(std::vector<float>(n, 0.0f),
            std::vector<float>(padded.out().end() - static_cast<long>(n), padded.out().end()));
  size_t n_keys = 0, n_values = 0;
  for (size_t i = 0; i < all.keys().size(); ++i) {
    n_keys += all.keys()[i] != padded.keys()[i], n_values += all.values()[i] != padded.values()[i];
  }
  // The third row's two kv heads, but for numbers that were there by chance.
  EXPECT_TRUE(n_keys > 200 && n_keys <= 2 * 128) << n_keys;
  EXPECT_TRUE(n_values > 200 && n_values <= 2 * 128) << n_values;
}

}  // namespace
}  // namespace sluice::backend::cuda::test
