// See text_slots.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/serving/text_slots.h"

#include <algorithm>

#include "base/check.h"

namespace sluice::engine {
namespace {

// To share fewer tokens costs more than to compute them: the page they are in is copied.
constexpr int kLeastShared = 16;
constexpr SequenceId kNone{-1};

}  // namespace

int common_tokens(std::span<const TokenId> a, std::span<const TokenId> b) {
  return static_cast<int>(std::ranges::mismatch(a, b).in1 - a.begin());
}

TextSlots::TextSlots(StepDriver& driver, int n_slots)
    : driver_(driver), slots_(static_cast<size_t>(n_slots)) {}

TextSlots::Found TextSlots::find(std::span<const TokenId> tokens, SequenceId skip) const {
  CHECK(!tokens.empty());
  const auto usable = tokens.first(tokens.size() - 1);
  Found best;
  for (int32_t i = 0; i < static_cast<int32_t>(slots_.size()); ++i) {
    const Slot& slot = slots_[static_cast<size_t>(i)];
    if (SequenceId(i) == skip) continue;
    const int n_common = common_tokens(slot.text, usable);
    if (n_common < kLeastShared || n_common <= best.n_tokens) continue;
    const int n = driver_.kept_tokens(SequenceId(i), n_common);
    if (n >= kLeastShared && n > best.n_tokens) best = {SequenceId(i), n, n_common};
  }
  return best;
}

// An empty one, or that of the text used least recently; `but` only where there is no other.
SequenceId TextSlots::free_slot(SequenceId but) const {
  SequenceId best = kNone;
  const auto rank = [&](SequenceId id) {
    const Slot& slot = slots_[static_cast<size_t>(id.value)];
    return id == but ? n_uses_ + 1 : slot.text.empty() ? 0 : slot.last_use;
  };
  for (int32_t i = 0; i < static_cast<int32_t>(slots_.size()); ++i) {
    if (slots_[static_cast<size_t>(i)].is_taken) continue;
    if (best == kNone || rank(SequenceId(i)) < rank(best)) best = SequenceId(i);
  }
  CHECK(best != kNone);
  return best;
}

void TextSlots::cut(SequenceId slot, int n_tokens) {
  driver_.truncate(slot, n_tokens);
  at(slot).text.resize(static_cast<size_t>(n_tokens));
}

void TextSlots::fork(const Found& from, SequenceId to) {
  driver_.fork(from.slot, to, from.n_tokens);
  const std::vector<TokenId>& text = at(from.slot).text;
  at(to).text.assign(text.begin(), text.begin() + from.n_tokens);
}

// A follow-up whose template leaves out thoughts differs from the kept text behind its messages:
// what is lost then is an answer that is not asked for any more. The same prompt once more leaves
// out its last token, as find() does.
bool TextSlots::takes_over(const Found& found) const {
  if (found.n_tokens == 0 || at(found.slot).is_taken) return false;
  const Slot& source = at(found.slot);
  return found.n_common + 1 >= source.n_asked || std::ssize(source.text) <= found.n_tokens + 1;
}

TextSlots::Found TextSlots::take(std::span<const TokenId> tokens) {
  const Found found = find(tokens);
  const SequenceId slot = takes_over(found) ? found.slot : free_slot(found.slot);
  if (slot == found.slot || found.n_tokens == 0) {
    cut(slot, found.n_tokens);
  } else {
    fork(found, slot);
  }
  at(slot).is_taken = true;
  at(slot).last_use = ++n_uses_;
  return {slot, found.n_tokens, found.n_common};
}

SequenceId TextSlots::take_empty() {
  const SequenceId slot = free_slot(kNone);
  cut(slot, 0);
  at(slot).is_taken = true;
  at(slot).last_use = ++n_uses_;
  return slot;
}

bool TextSlots::holds(std::span<const TokenId> tokens) {
  const auto n = static_cast<int>(tokens.size());
  for (int32_t i = 0; i < static_cast<int32_t>(slots_.size()); ++i) {
    Slot& slot = slots_[static_cast<size_t>(i)];
    if (common_tokens(slot.text, tokens) < n || driver_.kept_tokens(SequenceId(i), n) < n) continue;
    slot.last_use = ++n_uses_;
    return true;
  }
  return false;
}

int TextSlots::catch_up(SequenceId slot, std::span<const TokenId> tokens) {
  const auto n_held = static_cast<int>(at(slot).text.size());
  const Found found = find(tokens, slot);
  if (found.n_tokens < n_held + driver_.kv_pages().page_tokens) return n_held;
  fork(found, slot);
  return found.n_tokens;
}

void TextSlots::append(SequenceId slot, std::span<const TokenId> tokens) {
  at(slot).text.insert(at(slot).text.end(), tokens.begin(), tokens.end());
}

void TextSlots::keep(SequenceId slot, int n_asked) {
  at(slot).n_asked = n_asked;
  at(slot).is_taken = false;
  at(slot).last_use = ++n_uses_;
}

void TextSlots::forget(SequenceId slot) {
  at(slot).is_taken = false;
  cut(slot, 0);
}

bool TextSlots::give_up_page(SequenceId but) {
  SequenceId oldest = kNone;
  const auto rank = [&](SequenceId id) { return id == but ? n_uses_ + 1 : at(id).last_use; };
  for (int32_t i = 0; i < static_cast<int32_t>(slots_.size()); ++i) {
    const Slot& slot = slots_[static_cast<size_t>(i)];
    if (slot.is_taken || slot.text.empty()) continue;
    if (oldest == kNone || rank(SequenceId(i)) < rank(oldest)) oldest = SequenceId(i);
  }
  if (oldest == kNone) return false;
  const int page = driver_.kv_pages().page_tokens;
  CHECK(page > 0);
  const int n_left = (static_cast<int>(at(oldest).text.size()) - 1) / page * page;
  cut(oldest, driver_.kept_tokens(oldest, n_left));
  return true;
}

int TextSlots::n_kept() const {
  return static_cast<int>(std::ranges::count_if(
      slots_, [](const Slot& slot) { return !slot.is_taken && !slot.text.empty(); }));
}

}  // namespace sluice::engine
