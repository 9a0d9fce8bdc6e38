// See expert_copies.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/device/expert_copies.h"

#include <algorithm>

#include "base/check.h"
#include "base/error.h"

namespace sluice::engine {
namespace {

constexpr std::byte kPoison{0xff};  // as a scale: not a number
constexpr int kGroup = 4;           // copies behind which an event is recorded

}  // namespace

ExpertCopies::ExpertCopies(backend::Device& device, backend::Stream& main, backend::Stream& copies,
                           ExpertSlots& slots, HostExperts& host, const policy::ExpertCache& cache,
                           const ExpertCopyOptions& options)
    : slots_(slots),
      host_(host),
      cache_(cache),
      main_(main),
      copies_(copies),
      options_(options),
      left_(device.make_event()) {
  size_t n_slots = 0;
  for (int pool = 0; pool < cache.n_pools(); ++pool) {
    n_slots += static_cast<size_t>(cache.n_slots(pool));
  }
  queue_.reserve(n_slots);
  landed_.reserve(n_slots);
  pending_.resize(n_slots);
  events_.resize(n_slots + 1);
  for (auto& event : events_) event = device.make_event();
  slots_.clear(main_);
}

void ExpertCopies::boundary(std::span<const policy::Move> moves, const NearbyExperts& nearby,
                            uint64_t max_bytes) {
  publish_arrived();
  landed_.clear();
  for (const policy::Move& move : moves) {
    if (!take_landed(move, nearby.landed)) enqueue(move);
  }
  const size_t n = n_to_begin(max_bytes);
  if (n == 0) return;
  const std::span begun(queue_.data(), n);
  for (const policy::Move& move : begun) {
    if (move.evicts) take_out(move.out, slots_.slot(move.pool, move.slot));
  }
  main_.record(*left_);
  copies_.wait(*left_);
  for (const policy::Move& move : begun) begin(move, nearby);
  end_group();
  queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(n));
  // On the virtual clock the link is booked before the next step looks at it.
  (void)event(n_groups_ - 1).is_done();
}

// Not where another move of the slot is still to be made, or under way in the other stream.
bool ExpertCopies::take_landed(const policy::Move& move, const NearbyExperts::Place& landed) {
  const std::byte* const from = landed ? landed(move.in) : nullptr;
  std::byte* const slot = slots_.slot(move.pool, move.slot);
  const bool is_queued = std::ranges::any_of(queue_, [&](const policy::Move& queued) {
    return queued.pool == move.pool && queued.slot == move.slot;
  });
  if (from == nullptr || is_queued || is_pending(slot)) return false;
  if (move.evicts) take_out(move.out, slot);
  slots_.publish(move.in, slot, from);
  landed_.push_back(move);
  ++n_landed_;
  return true;
}

void ExpertCopies::doubt_landed() {
  for (policy::Move move : landed_) {
    move.evicts = false;  // it has left already
    slots_.publish(move.in, nullptr);
    queue_.push_back(move);
  }
  landed_.clear();
}

// An expert that must leave before its own move was begun never came: one move brings the newcomer.
void ExpertCopies::enqueue(const policy::Move& move) {
  const auto same = std::ranges::find_if(queue_, [&](const policy::Move& queued) {
    return queued.pool == move.pool && queued.slot == move.slot;
  });
  policy::Move next = move;
  if (same != queue_.end()) {
    next.out = same->out;
    next.evicts = same->evicts;
    queue_.erase(same);
  }
  if (!next.evicts || next.in != next.out) {
    queue_.push_back(next);
    return;
  }
  // It has never left. The table may have shown another slot meanwhile.
  std::byte* const slot = slots_.slot(next.pool, next.slot);
  if (!is_pending(slot) && slots_.published(next.in) != slot) slots_.publish(next.in, slot);
}

bool ExpertCopies::is_pending(const std::byte* slot) const {
  return std::any_of(pending_.begin(), pending_.begin() + static_cast<std::ptrdiff_t>(n_pending_),
                     [slot](const Pending& p) { return p.slot == slot; });
}

// Whether the cache means this slot, after all moves that it has asked for.
bool ExpertCopies::belongs(policy::ExpertKey key, const std::byte* slot) const {
  return cache_.resident(key.layer, key.expert) &&
         slots_.slot(cache_.pool(key.layer), cache_.slot(key.layer, key.expert)) == slot;
}

// In order, until so many bytes are under way; one at least where nothing is. Not more than there
// are events for, were each a group.
size_t ExpertCopies::n_to_begin(uint64_t max_bytes) const {
  uint64_t n_bytes = 0;
  for (size_t i = 0; i < n_pending_; ++i) n_bytes += slots_.layout(pending_[i].key.layer).n_bytes;
  const size_t most = std::min<size_t>(queue_.size(), events_.size() - (n_groups_ - n_done_));
  size_t n = 0;
  for (; n < most; ++n) {
    const uint64_t more = slots_.layout(queue_[n].in.layer).n_bytes;
    if (n_bytes > 0 && more > max_bytes - std::min(n_bytes, max_bytes)) break;
    n_bytes += more;
  }
  return n;
}

// It may not have arrived yet: then it was never there. Or it has another slot by now.
void ExpertCopies::take_out(policy::ExpertKey key, const std::byte* slot) {
  const auto end = pending_.begin() + static_cast<std::ptrdiff_t>(n_pending_);
  const auto found =
      std::find_if(pending_.begin(), end, [&](const Pending& p) { return p.slot == slot; });
  if (found != end) std::swap(*found, pending_[--n_pending_]);
  if (slots_.published(key) == slot) slots_.publish(key, nullptr);
}

bool ExpertCopies::mend() {
  if (!copies_.has_failed()) return false;
  try {
    copies_.finish();
  } catch (const Error& e) {
    last_fault_ = e.what();
  }
  ++n_failed_;
  n_done_ = n_groups_;
  for (size_t i = 0; i < n_pending_; ++i) copy(pending_[i], nullptr);
  end_group();
  return true;
}

void ExpertCopies::publish_arrived() {
  uint64_t n_done = n_done_;
  while (n_done < n_groups_ && event(n_done).is_done()) ++n_done;
  // Events are reached after a fault too; and what is seen as done was done before it is asked.
  if (n_done == n_done_ || copies_.has_failed()) return;
  n_done_ = n_done;
  for (size_t i = 0; i < n_pending_;) {
    if (pending_[i].group >= n_done_) {
      ++i;
      continue;
    }
    // What another move will overwrite is not shown any more.
    if (belongs(pending_[i].key, pending_[i].slot)) {
      slots_.publish(pending_[i].key, pending_[i].slot);
    }
    std::swap(pending_[i], pending_[--n_pending_]);
  }
}

void ExpertCopies::begin(const policy::Move& move, const NearbyExperts& nearby) {
  CHECK(n_pending_ < pending_.size());
  Pending& pending = pending_[n_pending_++];
  pending.key = move.in;
  pending.slot = slots_.slot(move.pool, move.slot);
  copy(pending, nearby.staged ? nearby.staged(move.in) : nullptr);
}

void ExpertCopies::copy(Pending& pending, const std::byte* nearby) {
  const backend::ExpertLayout& layout = slots_.layout(pending.key.layer);
  if (options_.poison) copies_.fill(pending.slot, kPoison, layout.n_bytes);
  if (nearby) {
    copies_.copy(pending.slot, nearby, layout.n_bytes);
  } else {
    host_.copy(pending.key, layout, pending.slot, copies_);
    ++n_copies_;
    copied_bytes_ += layout.n_bytes;
  }
  pending.group = n_groups_;
  if (++n_in_group_ == kGroup) end_group();
}

void ExpertCopies::end_group() {
  if (n_in_group_ == 0) return;
  n_in_group_ = 0;
  copies_.record(event(n_groups_++));
}

// Groups are done in the stream's order.
bool ExpertCopies::is_idle() const {
  return n_done_ == n_groups_ || event(n_groups_ - 1).is_done();
}

void ExpertCopies::finish() {
  copies_.finish();
  publish_arrived();
  if (slots_.has_copies()) slots_.write_changes(main_);
  main_.finish();
}

}  // namespace sluice::engine
