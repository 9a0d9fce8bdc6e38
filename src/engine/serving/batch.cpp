// See batch.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/serving/batch.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "engine/step/saved_text.h"

namespace sluice::engine {
namespace {

using Clock = LiveRequest::Clock;

bool is_older(const Batch::Live& a, const Batch::Live& b) { return a->id() < b->id(); }

// What goes wrong with a file fails the request; false then.
template <typename Call>
bool try_with_file(LiveRequest& request, const Call& call) {
  try {
    call();
    return true;
  } catch (const Error& e) {
    request.fail(e);
  } catch (const std::exception& e) {
    request.fail(Error(Errc::out_of_memory, cat("the text's file failed: ", e.what())));
  }
  return false;
}

}  // namespace

Batch::Batch(StepDriver& driver, const BatchOptions& options)
    : driver_(driver), options_(options), slots_(driver, options.n_sequences + options.n_kept) {
  update_gauges();
}

void Batch::step() {
  end_interrupted();
  for (bool is_done = false; !is_done;) {
    admit();
    if (running_.empty()) break;
    share_prefixes();
    const std::vector<policy::RowShare> shares = policy::share_rows(texts(), driver_.max_rows());
    is_done = compute(shares);
  }
  update_gauges();
}

void Batch::end_interrupted() {
  const auto now = Clock::now();
  std::vector<Live> all(running_);
  all.insert(all.end(), waiting_.begin(), waiting_.end());
  for (const Live& live : all) {
    if (const auto reason = live->interrupted(now)) end(*live, *reason);
  }
}

void Batch::end(LiveRequest& request, StopReason reason) {
  // What a failed one has computed may be what failed it.
  const bool is_kept = reason != StopReason::failed;
  reason = save(request, reason);
  if (request.slot.value >= 0) {
    is_kept ? slots_.keep(request.slot, request.n_asked()) : slots_.forget(request.slot);
  }
  ++(reason == StopReason::cancelled  ? stats_.n_cancelled
     : reason == StopReason::deadline ? stats_.n_expired
     : reason == StopReason::failed   ? stats_.n_failed
                                      : stats_.n_finished);
  request.end(reason, Clock::now());
  ended_.push_back(request.id());
  const auto is_it = [&](const Live& live) { return live.get() == &request; };
  std::erase_if(waiting_, is_it);
  std::erase_if(running_, is_it);  // the last one that holds it may be this
}

// Writes the text of one that ends by itself, if it wants that; where that fails, so does it.
StopReason Batch::save(LiveRequest& request, StopReason reason) {
  const bool is_broken_off = reason == StopReason::cancelled || reason == StopReason::deadline ||
                             reason == StopReason::failed;
  if (request.save_to().empty() || is_broken_off) return reason;
  const bool is_saved = try_with_file(request, [&] {
    save_text(request.save_to(), driver_.text_memory(), request.slot, options_.model);
  });
  return is_saved ? reason : StopReason::failed;
}

// Reads the text of one that wants that, which then has ended; false where there is no room yet.
bool Batch::restore(LiveRequest& request) {
  const std::string& path = request.restore_from();
  const bool is_known = !request.text().empty() || try_with_file(request, [&] {
    request.set_prompt(read_saved_tokens(path, driver_.text_memory(), options_.model));
  });
  if (is_known && !slots_.holds(request.text())) {
    if (!has_room(request)) return false;
    request.start(Clock::now());
    request.slot = slots_.take_empty();
    try_with_file(request, [&] {
      const auto tokens = load_text(path, driver_.text_memory(), request.slot, options_.model);
      if (tokens != request.text()) {
        throw Error(Errc::bad_file, cat(path, ": was replaced while it was read; try again"));
      }
      slots_.append(request.slot, tokens);
    });
  }
  request.n_reused = request.has_failed() ? 0 : static_cast<int>(request.text().size());
  end(request, request.has_failed() ? StopReason::failed : StopReason::length);
  return true;
}

// Pages for what is known of a text, and the token that follows.
int Batch::n_pages_of(const LiveRequest& request) const {
  return driver_.kv_pages().n_for(
      std::min<int64_t>(std::ssize(request.text()) + 1, options_.n_ctx));
}

// Pages that running requests will still need for that.
int Batch::n_promised() const {
  const KvPages pages = driver_.kv_pages();
  int n = 0;
  for (const Live& live : running_) n += n_pages_of(*live) - pages.n_for(live->n_done);
  return n;
}

// Kept texts make room for it, but nobody who runs. Alone it has room: the pool holds one context.
bool Batch::has_room(const LiveRequest& request) {
  for (;;) {
    const KvPages pages = driver_.kv_pages();
    const bool is_restored = !request.restore_from().empty();  // shares no pages
    const TextSlots::Found held = is_restored ? TextSlots::Found{} : slots_.find(request.text());
    const int n_needed = n_pages_of(request) - held.n_tokens / pages.page_tokens;
    if (pages.n_free - n_promised() >= n_needed) return true;
    if (!slots_.give_up_page(held.slot)) return running_.empty();
  }
}

void Batch::admit() {
  const auto now = Clock::now();
  while (!waiting_.empty() && std::ssize(running_) < options_.n_sequences) {
    const Live first = waiting_.front();
    LiveRequest& request = *first;
    if (!request.restore_from().empty()) {
      if (!restore(request)) return;
      continue;
    }
    if (!has_room(request)) return;
    const TextSlots::Found held = slots_.take(request.text());
    request.slot = held.slot;
    request.n_done = held.n_tokens;
    if (request.last_step == 0) {
      request.n_reused = held.n_tokens;
      stats_.n_reused_tokens += held.n_tokens;
    }
    request.start(now);
    running_.insert(std::ranges::upper_bound(running_, first, is_older), first);
    waiting_.pop_front();
  }
}

// What others have computed since it was let in need not be computed again.
void Batch::share_prefixes() {
  for (const Live& live : running_) {
    if (!live->is_prompt() || must_wait(*live)) continue;
    const int n_held = slots_.catch_up(live->slot, live->text());
    if (live->n_new() == 0) {
      live->n_reused += n_held - live->n_done;
      stats_.n_reused_tokens += n_held - live->n_done;
    }
    live->n_done = n_held;
  }
}

bool Batch::must_wait(const LiveRequest& request) const {
  const int page = driver_.kv_pages().page_tokens;
  return std::ranges::any_of(running_, [&](const Live& other) {
    if (other->id() >= request.id() || !other->is_prompt()) return false;
    const int n_common = common_tokens(request.text(), other->text());
    return n_common >= request.n_done + page && other->n_done < n_common;
  });
}

std::vector<policy::BatchText> Batch::texts() const {
  std::vector<policy::BatchText> texts;
  for (const Live& live : running_) {
    const bool is_prompt = live->is_prompt();
    texts.push_back({.n_pending = live->n_pending(),
                     .is_prompt = is_prompt,
                     .n_to_point = driver_.keeps_points() ? live->n_to_point() : 0,
                     .last_step = live->last_step,
                     .must_wait = is_prompt && must_wait(*live)});
  }
  return texts;
}

void Batch::pause_youngest() {
  const Live youngest = running_.back();
  slots_.keep(youngest->slot, youngest->n_asked());
  youngest->slot = SequenceId(-1);
  youngest->n_done = 0;
  running_.pop_back();
  waiting_.insert(std::ranges::upper_bound(waiting_, youngest, is_older), youngest);
  ++stats_.n_paused;
}

// After a step that found no page: a page more, or false where there is nobody to take it from.
bool Batch::make_room() {
  if (slots_.give_up_page()) return true;
  if (running_.size() < 2) return false;
  pause_youngest();
  return true;
}

void Batch::build_rows(const std::vector<policy::RowShare>& shares) {
  rows_.clear();
  owners_.clear();
  n_decode_rows_ = 0;
  for (const auto& [text, n_rows] : shares) {
    LiveRequest& live = *running_[static_cast<size_t>(text)];
    const bool is_decode = !live.is_prompt();
    n_decode_rows_ += is_decode ? 1 : 0;
    for (int i = 0; i < n_rows; ++i) {
      const TokenId token = live.text()[static_cast<size_t>(live.n_done + i)];
      rows_.push_back({.token = token, .sequence = live.slot, .is_decode = is_decode});
      owners_.push_back(&live);
    }
    rows_.back().ends_message = n_rows == live.n_to_point();
    if (n_rows < live.n_pending() || !live.wants_token()) continue;
    rows_.back().wants_logits = live.wants_logits();
    rows_.back().n_best = live.wants_logits() ? 0 : 1;
  }
}

// False where it is to be tried again, with others or with more pages.
bool Batch::compute(const std::vector<policy::RowShare>& shares) {
  build_rows(shares);
  const bool is_prompt = n_decode_rows_ < std::ssize(rows_);
  const auto owner = [&](int64_t row) -> LiveRequest& {
    return *owners_[static_cast<size_t>(row)];
  };
  StepListener listener;
  listener.on_logits = [&](int64_t row, std::span<const float> logits) {
    owner(row).see_logits(logits, options_.origin);
  };
  listener.on_pick = [&](int64_t row, const backend::PickedRow& picked) {
    owner(row).see_best(picked.best[0].token, picked.is_finite, options_.origin);
  };
  const auto start = Clock::now();
  try {
    driver_.step(rows_, is_prompt ? policy::Phase::prefill : policy::Phase::decode, listener);
  } catch (const Error& e) {
    if (e.code() == Errc::out_of_memory && make_room()) return false;
    fail(shares, e);
    return true;
  } catch (const std::exception& e) {
    fail(shares, Error(Errc::device, cat("the step failed: ", e.what())));
    return true;
  }
  count_step(std::chrono::duration<double>(Clock::now() - start).count());
  after_step(shares);
  return true;
}

void Batch::fail(const std::vector<policy::RowShare>& shares, const Error& error) {
  std::vector<Live> failed;
  for (const auto& share : shares) failed.push_back(running_[static_cast<size_t>(share.text)]);
  for (const Live& live : failed) {
    live->fail(error);
    end(*live, StopReason::failed);
  }
}

void Batch::after_step(const std::vector<policy::RowShare>& shares) {
  std::vector<std::pair<Live, int>> parts;
  for (const auto& [text, n] : shares) parts.emplace_back(running_[static_cast<size_t>(text)], n);
  for (const auto& [live, n] : parts) {
    slots_.append(
        live->slot,
        std::span(live->text()).subspan(static_cast<size_t>(live->n_done), static_cast<size_t>(n)));
    live->n_done += n;
    live->last_step = stats_.n_steps;
  }
  for (const auto& part : parts) {
    LiveRequest& live = *part.first;
    const int n_before = live.n_new();
    const auto reason = live.after_step(options_.n_ctx, Clock::now());
    stats_.n_new_tokens += live.n_new() - n_before;
    if (reason) end(live, *reason);
  }
}

void Batch::count_step(double seconds) {
  ++stats_.n_steps;
  stats_.last_decode_rows = n_decode_rows_;
  stats_.last_prompt_rows = static_cast<int>(rows_.size()) - n_decode_rows_;
  stats_.n_prompt_tokens += stats_.last_prompt_rows;
  (stats_.last_prompt_rows > 0 ? stats_.prompt_seconds : stats_.decode_seconds) += seconds;
}

void Batch::update_gauges() {
  const KvPages pages = driver_.kv_pages();
  stats_.n_running = static_cast<int>(running_.size());
  stats_.n_queued = static_cast<int>(waiting_.size());
  stats_.page_tokens = pages.page_tokens;
  stats_.n_pages = pages.n_pages;
  stats_.n_free_pages = pages.n_free;
  stats_.n_kept_texts = slots_.n_kept();
  stats_.n_replayed_tokens = driver_.went_back().n_replayed;
  stats_.n_recomputed_tokens = driver_.went_back().n_computed;
  stats_.kv_bytes = driver_.kv_bytes();
}

}  // namespace sluice::engine
