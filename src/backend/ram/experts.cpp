// Experts on the RAM device (device_ops.h): what is in its memory, what it reads over the link, and
// what it asks the host for.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <utility>

#include "backend/ram/ram_address.h"
#include "backend/ram/ram_kernels.h"
#include "base/check.h"
#include "base/error.h"
#include "base/miss_split.h"
#include "base/patience.h"

namespace sluice::backend {
namespace {

constexpr double kGiga = 1e9;
constexpr double kMicro = 1e-6;

int64_t nanoseconds(double seconds) { return std::llround(seconds * kGiga); }

// What the host writes meanwhile.
template <typename T>
T read_now(const T& word) {
  return std::atomic_ref(const_cast<T&>(word)).load(std::memory_order_acquire);
}

int64_t n_slots(std::span<const ExpertPair> pairs) {
  int64_t n = 0;
  for (const ExpertPair& pair : pairs) n = std::max<int64_t>(n, pair.slot + 1);
  return n;
}

}  // namespace

void RamKernels::experts(const ExpertsView& experts, const ExpertInputView& a,
                         const RoutingView& routing, RowsView x) {
  CHECK(experts.table);
  hits_.clear();
  for (int32_t slot = 0; slot < a.n_rows * routing.n_used; ++slot) {
    hits_.push_back({routing.experts[slot], slot / routing.n_used, slot});
  }
  compute_hits(experts, a);
  add_sorted(experts, routing, {}, x);
}

void RamKernels::change_table(const TableChangesView& changes) {
  for (const TableChange& change : std::span(changes.changes, static_cast<size_t>(*changes.n))) {
    changes.table[change.entry] = change.slot;
    if (change.from == nullptr) continue;
    std::memcpy(host_address(change.slot), host_address(change.from), change.n_bytes);
    RamDevice::spend(2.0 * static_cast<double>(change.n_bytes) / (machine_.device_gbps * kGiga));
  }
}

// The experts' output, by slot.
float* RamKernels::rows(int64_t n_slots, int64_t n_cols) const {
  CHECK(static_cast<uint64_t>(n_slots * n_cols) * sizeof(float) <= scratch_.size());
  return reinterpret_cast<float*>(host_address(scratch_.data()));
}

const std::byte* RamKernels::staged(const LookupView& lookup, int32_t expert) const {
  const uint64_t key = staged_key(*lookup.step, lookup.layer, expert);
  for (const StagedSlot& slot : lookup.staged) {
    if (device_.read(slot.ready) == key) return host_address(slot.data);
  }
  return nullptr;
}

int64_t RamKernels::count_experts(std::span<const ExpertPair> pairs, int64_t n_experts) {
  used_.assign(static_cast<size_t>(n_experts), 0);
  int64_t n = 0;
  for (const ExpertPair& pair : pairs) n += used_[static_cast<size_t>(pair.expert)]++ == 0;
  return n;
}

double RamKernels::seconds_of(std::span<const ExpertPair> pairs, const ExpertsView& experts) {
  const auto n_bytes = static_cast<double>(ExpertLayout(experts).n_bytes);
  const double n_values = static_cast<double>(3 * experts.gate.n_cols * experts.gate.n_rows *
                                              static_cast<int64_t>(pairs.size()));
  const double read = n_bytes * static_cast<double>(count_experts(pairs, experts.gate.n_mats));
  return std::max(read, 2.0 * n_values / kRamOpsPerByte) / (machine_.device_gbps * kGiga);
}

// Whole experts, the first ones that were missed: whose rows are more does not change what is read.
void RamKernels::divide_misses(const ExpertsView& experts, float link_share) {
  const auto n_missed = static_cast<int>(count_experts(misses_, experts.gate.n_mats));
  int n_left = link_reads(n_missed, link_share);
  std::fill(used_.begin(), used_.end(), 0);
  for (const ExpertPair& pair : misses_) {
    char& is_read = used_[static_cast<size_t>(pair.expert)];
    if (is_read == 0) is_read = n_left-- > 0 ? 1 : 2;
  }
  const auto is_link = [&](const ExpertPair& p) {
    return used_[static_cast<size_t>(p.expert)] == 1;
  };
  std::ranges::copy_if(misses_, std::back_inserter(link_), is_link);
  std::erase_if(misses_, is_link);
}

void RamKernels::find_experts(const ExpertsView& experts, const LookupView& lookup,
                              const ExpertInputView& a, const RoutingView& routing) {
  if (lookup.log.counts) RamDevice::spend(machine_.lookup_us * kMicro);
  found_at_ = device_.now();
  layer_ = lookup.layer;
  has_shared_ = static_cast<bool>(experts.shared_gate);
  log_ = lookup.log.counts ? lookup.log.counts : &unread_log_;
  n_live_ = std::min<int64_t>(*lookup.n_live, a.n_rows);
  reserve(experts, a.n_rows, routing.n_used);
  if (lookup.part == 0) *log_ = {};
  if (lookup.log.counts) append_routing(routing, n_live_, lookup.log);
  take_table({lookup.table, static_cast<size_t>(experts.gate.n_mats)});
  hits_.clear(), link_.clear(), misses_.clear();
  used_.assign(static_cast<size_t>(experts.gate.n_mats), 0);
  for (int32_t slot = 0; slot < n_live_ * routing.n_used; ++slot) {
    const int32_t e = routing.experts[slot];
    const std::byte*& found = table_[static_cast<size_t>(e)];
    const bool is_resident = lookup.table[e] != nullptr;
    // Once for all rows: a copy that arrives in between would be there for some of them only.
    const bool is_first = std::exchange(used_[static_cast<size_t>(e)], 1) == 0;
    if (!found && is_first) found = staged(lookup, e);
    (found ? hits_ : misses_).push_back({e, static_cast<int32_t>(slot / routing.n_used), slot});
    log_->n_hits += is_resident;
    log_->n_staged += !is_resident && found;
  }
  const ExpertLayout layout(experts);
  if (lookup.host) divide_misses(experts, *lookup.link_share);
  for (const ExpertPair& pair : link_) {
    table_[static_cast<size_t>(pair.expert)] = layout.slot(lookup.host, pair.expert);
  }
  log_->n_link += static_cast<int32_t>(link_.size());
  log_->n_cpu += static_cast<int32_t>(misses_.size());

  const uint64_t expert_bytes = layout.n_bytes;
  const double busy_until = device_.link_free_at();
  const uint64_t link_bytes =
      static_cast<uint64_t>(count_experts(link_, experts.gate.n_mats)) * expert_bytes;
  log_->link_bytes += link_bytes;
  read_by_ = link_.empty() ? found_at_ : device_.cross_link(link_bytes) + machine_.link_us * kMicro;
  if (lookup.landing.data) land(lookup, expert_bytes);
  ask_host(request_number(*lookup.step, lookup.layer, lookup.part), live(a));
  answered_by_ = found_at_;
  if (misses_.empty()) return;
  // Whatever crosses the link meanwhile takes its bytes from the workers.
  const double cpu_rate = machine_.cpu_gbps * kGiga;
  const double work = static_cast<double>(count_experts(misses_, experts.gate.n_mats)) *
                      static_cast<double>(expert_bytes) / cpu_rate;
  const double copies = std::clamp(busy_until - found_at_, 0.0, work) * machine_.link_gbps * kGiga;
  answered_by_ +=
      machine_.handshake_us * kMicro + work +
      machine_.copy_interference * (static_cast<double>(link_bytes) + copies) / cpu_rate;
}

// What crosses the link leaves a copy, each expert once, while there is room.
void RamKernels::land(const LookupView& lookup, uint64_t expert_bytes) {
  const LandingView& landing = lookup.landing;
  int32_t at = landing.n_taken[0];
  std::ranges::fill(used_, 0);
  for (const ExpertPair& pair : link_) {
    if (std::exchange(used_[static_cast<size_t>(pair.expert)], 1) != 0) continue;
    if (at == landing.n_places) break;
    std::byte* const place = landing.data + static_cast<uint64_t>(at) * landing.place_bytes;
    std::memcpy(place, table_[static_cast<size_t>(pair.expert)], expert_bytes);
    landing.landed[at++] = staged_key(*lookup.step, lookup.layer, pair.expert);
  }
  landing.n_taken[1] = at;
}

// Whatever is found where.
void RamKernels::reserve(const ExpertsView& experts, int64_t n_rows, int n_used) {
  experts_.reserve(experts, n_rows, n_used);
  for (auto* pairs : {&hits_, &link_, &misses_}) {
    pairs->reserve(static_cast<size_t>(n_rows * n_used));
  }
}

void RamKernels::ask_host(uint64_t number, const ExpertInputView& a) {
  is_lost_ = !misses_.empty() && !post(mailbox_, number, misses_, a);
  request_ = misses_.empty() || is_lost_ ? 0 : number;
}

void RamKernels::sort_pairs(const ExpertsView& experts, const SortView& sort,
                            const RoutingView& routing, int64_t n_rows) {
  const int64_t n_experts = experts.gate.n_mats;
  const int64_t n_pairs = n_rows * routing.n_used;
  int32_t* const first = sort.pairs.first;
  std::fill_n(first, n_experts + 1, 0);
  for (int64_t slot = 0; slot < n_pairs; ++slot) ++first[routing.experts[slot] + 1];
  if (sort.n_pairs) std::copy_n(first + 1, n_experts, sort.n_pairs);
  for (int64_t e = 0; e < n_experts; ++e) first[e + 1] += first[e];
  for (int64_t slot = n_pairs; slot-- > 0;) {  // each expert's from its end, down to its first
    sort.pairs.slots[--first[routing.experts[slot] + 1]] = static_cast<int32_t>(slot);
  }
  std::copy_n(first + 1, n_experts, first);
  first[n_experts] = static_cast<int32_t>(n_pairs);
  if (sort.told) device_.tell(sort.told, request_number(*sort.step, sort.layer));
}

void RamKernels::append_routing(const RoutingView& routing, int64_t n_rows,
                                const LayerLogView& log) {
  RoutedExpert* const to = log.routed + int64_t{log.counts->n_rows} * routing.n_used;
  for (int64_t i = 0; i < n_rows * routing.n_used; ++i) {
    to[i] = {ExpertId(routing.experts[i]), routing.weights[i]};
  }
  log.counts->n_rows += static_cast<int32_t>(n_rows);
}

// Without padding.
ExpertInputView RamKernels::live(ExpertInputView a) const {
  a.n_rows = n_live_;
  return a;
}

// On the virtual clock the host's thread has its turn before the work goes on, so that every run is
// the same.
void RamKernels::foresee(const ForeseeView& foresee, ConstRowsView x, const NormView& norm,
                         const RouterView& router, const RoutingView& prediction) {
  LayerNews& news = *foresee.news;
  news.is_asked = router.weight && read_now(*foresee.wanted) != 0;
  if (news.is_asked) {
    route(x, norm, router, {.n_rows = x.n_rows, .n_cols = x.n_cols}, prediction);
  }
  const uint64_t number = request_number(*foresee.step, foresee.layer);
  device_.tell(&news.told, number);
  if (machine_.clock == Clock::wall) return;
  for (Patience patience; read_now(news.heard) != number;) patience.wait();
}

void RamKernels::compute_found(const ExpertsView& experts, const ExpertInputView& a) {
  const ExpertInputView real = live(a);
  ExpertsView found = experts;
  found.table = table_.data();
  if (!link_.empty()) {
    ExpertsView routed = found;
    routed.shared_gate = {};
    experts_.compute(routed, link_, real, rows(n_slots(link_), a.n_cols));
  }
  compute_own(found, hits_, real);
  const double before = device_.now();
  device_.stand_until(read_by_);
  log_->stall_ns += nanoseconds(device_.now() - before);
}

void RamKernels::compute_sorted(const ExpertsView& experts, const SortedPairs& pairs,
                                const ExpertInputView& a) {
  hits_.clear();
  for (int32_t e = 0; e < experts.gate.n_mats; ++e) {
    if (!experts.table[e]) continue;
    for (int32_t i = pairs.first[e]; i < pairs.first[e + 1]; ++i) {
      hits_.push_back({e, pairs.slots[i] / pairs.n_used, pairs.slots[i]});
    }
  }
  if (!hits_.empty() || experts.shared_gate) compute_hits(experts, a);
}

void RamKernels::compute_hits(const ExpertsView& experts, const ExpertInputView& a) {
  take_table({experts.table, static_cast<size_t>(experts.gate.n_mats)});
  ExpertsView taken = experts;
  taken.table = table_.data();
  compute_own(taken, hits_, a);
}

// As this can follow its addresses.
void RamKernels::take_table(std::span<const std::byte* const> table) {
  table_.clear();
  for (const std::byte* const slot : table) table_.push_back(host_address(slot));
}

void RamKernels::compute_own(const ExpertsView& experts, std::span<const ExpertPair> pairs,
                             const ExpertInputView& a) {
  for (const ExpertPair& pair : pairs) {
    const ExpertLayout layout(experts);
    CHECK(device_.owns({experts.table[pair.expert], layout.n_bytes}));
  }
  RamDevice::spend(machine_.experts_us * kMicro + seconds_of(pairs, experts));
  if (experts.shared_gate) {
    for (const WeightView* w : {&experts.shared_gate, &experts.shared_up, &experts.shared_down}) {
      read(*w, a.n_rows);
    }
  }
  experts_.compute(experts, pairs, a, rows(n_slots(pairs), a.n_cols));
}

void RamKernels::add_found(const RoutingView& routing, RowsView x) {
  x.n_rows = n_live_;
  if (is_lost_ || (request_ != 0 && !take_answer(x.n_cols))) return;
  experts_.combine(routing, rows(x.n_rows * routing.n_used, x.n_cols), has_shared_, x);
  log_->ns += nanoseconds(device_.now() - found_at_);
}

bool RamKernels::take_answer(int64_t n_cols) {
  const double before = device_.now();
  if (!wait(mailbox_, request_)) return false;
  const bool is_virtual = machine_.clock == Clock::virtual_time;
  if (is_virtual) device_.stand_until(answered_by_);
  log_->wait_ns += nanoseconds(device_.now() - before);
  log_->cpu_ns += is_virtual
                      ? nanoseconds(answered_by_ - found_at_ - machine_.handshake_us * kMicro)
                      : mailbox_.head->answer_ns;
  for (const ExpertPair& pair : misses_) {
    std::copy_n(mailbox_.answers + pair.slot * n_cols, n_cols,
                rows(pair.slot + 1, n_cols) + pair.slot * n_cols);
  }
  return true;
}

void RamKernels::add_sorted(const ExpertsView& experts, const RoutingView& routing,
                            const LayerLogView& log, RowsView x) {
  if (log.counts) {
    *log.counts = {};
    append_routing(routing, x.n_rows, log);
  }
  experts_.combine(routing, rows(x.n_rows * routing.n_used, x.n_cols),
                   static_cast<bool>(experts.shared_gate), x);
}

}  // namespace sluice::backend
