// See state_points.h.
// SPDX-License-Identifier: Apache-2.0
#include "policy/cache/state_points.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace sluice::policy {
namespace {

// A text mostly goes back to the end of one of its newest messages: behind the last question, the
// answer before. Another prompt may also part from it within a message.
constexpr int kNewestMessages = 3, kNewestChunks = 2;
constexpr int kAny = std::numeric_limits<int>::max();

}  // namespace

StatePoints::StatePoints(int n_sequences)
    : n_holders_(static_cast<size_t>(n_states(n_sequences)), 0),
      texts_(static_cast<size_t>(n_sequences)) {
  for (int32_t i = n_states(n_sequences) - 1; i >= 0; --i) free_.push_back(i);
  for (Text& text : texts_) text.bases = {{}};
}

int32_t StatePoints::take() {
  while (free_.empty()) give_up_something();
  const int32_t state = free_.back();
  free_.pop_back();
  return state;
}

// What is missed least: old points; how a text that does not run goes back by a few tokens; ends of
// chunks; ends of messages but the last. At worst every text still has its newest state, the one of
// its step and a point, and those are fewer than there are places. A state that others hold too
// gives no place back.
void StatePoints::give_up_something() {
  CHECK(give_up_a_point({kNewestMessages, kNewestChunks}) || give_up_a_way_back(/*of_any=*/false) ||
        give_up_a_point({kNewestMessages, 0}) || give_up_a_point({1, 0}) ||
        give_up_a_point({1, 0, kAny}) || give_up_a_way_back(/*of_any=*/true));
}

StatePoints::Point StatePoints::hold(Point point) {
  if (point.state >= 0) ++n_holders_[static_cast<size_t>(point.state)];
  return point;
}

void StatePoints::let_go(Point& point) {
  if (point.state >= 0 && --n_holders_[static_cast<size_t>(point.state)] == 0) {
    free_.push_back(point.state);
  }
  point = {};
}

void StatePoints::cut(Points& points, int n_tokens) {
  while (!points.empty() && points.back().position > n_tokens) {
    let_go(points.back());
    points.pop_back();
  }
}

// The one whose neighbours are nearest to each other: to compute from the one before costs least.
// Not a text's only point; false where there are none but those that are spared.
bool StatePoints::give_up_a_point(const Spared& spared) {
  Points* whose = nullptr;
  size_t which = 0;
  int least = 0;
  for (Text& text : texts_) {
    Points& kept = text.kept;
    int n_messages = 0, n_chunks = 0;  // from the point on
    for (size_t i = kept.size(); kept.size() > 1 && i-- > 0;) {
      const bool is_new =
          kept[i].ends_message ? ++n_messages <= spared.n_messages : ++n_chunks <= spared.n_chunks;
      if (is_new || n_holders_[static_cast<size_t>(kept[i].state)] > spared.n_holders) continue;
      const int next = i + 1 < kept.size() ? kept[i + 1].position : text.newest.position;
      const int gap = next - (i > 0 ? kept[i - 1].position : 0);
      if (whose && gap >= least) continue;
      whose = &kept;
      which = i;
      least = gap;
    }
  }
  if (!whose) return false;
  let_go((*whose)[which]);
  whose->erase(whose->begin() + static_cast<std::ptrdiff_t>(which));
  return true;
}

// All states of a text but the newest and its points: of the one whose last step is longest ago.
// One that took none of the newest steps, as many as there are texts, does not run.
bool StatePoints::give_up_a_way_back(bool of_any) {
  Text* whose = nullptr;
  for (Text& text : texts_) {
    const auto is_more = [&](const Point& p) {
      return p.state >= 0 && p.state != text.newest.state;
    };
    if (!is_more(text.before) && std::ranges::none_of(text.bases, is_more)) continue;
    if (!of_any && n_steps_ - text.last_step < std::ssize(texts_)) continue;
    if (!whose || text.last_step < whose->last_step) whose = &text;
  }
  if (!whose) return false;
  let_go(whose->before);
  cut(whose->bases, -1);
  whose->bases.push_back(hold(whose->newest));
  return true;
}

StatePoints::Places StatePoints::begin_step(SequenceId sequence) {
  Text& t = text(sequence);
  CHECK(t.written < 0);
  t.last_step = ++n_steps_;
  let_go(t.before);
  t.written = take();
  return {t.newest.state, t.written};
}

void StatePoints::end_step(SequenceId sequence, int end, StepEnd what) {
  Text& t = text(sequence);
  CHECK(t.written >= 0 && end > t.newest.position);
  const int n_rows = end - t.newest.position;
  t.before = t.newest;
  t.newest = hold({end, t.written});
  t.written = -1;
  if (what != StepEnd::nothing) keep(t, what == StepEnd::message_end);
  add_base(t, n_rows);
}

// The older base is given up when the newer is far enough back. So the older is never further back
// than 3 kRollbackTokens - 2: between the two lie less than kRollbackTokens and a step's rows, and
// behind the newer less than kRollbackTokens.
void StatePoints::add_base(Text& t, int n_rows) {
  const int end = t.newest.position;
  if (n_rows > kRollbackTokens) cut(t.bases, -1);  // no updates lead here
  if (!t.bases.empty() && end - t.bases.back().position < kRollbackTokens) return;
  if (t.bases.size() > 1) {
    let_go(t.bases.front());
    t.bases.erase(t.bases.begin());
  }
  t.bases.push_back(hold(t.newest));
}

void StatePoints::keep(Text& t, bool ends_message) {
  t.kept.push_back(hold(t.newest));
  t.kept.back().ends_message = ends_message;
}

void StatePoints::drop_step(SequenceId sequence) {
  Text& t = text(sequence);
  if (t.written >= 0) free_.push_back(t.written);
  t.written = -1;
}

// The last point of a text that is not behind n_tokens; its beginning where there is none.
StatePoints::Point StatePoints::nearest(const Text& t, int n_tokens) {
  Point found;
  const auto look_at = [&](const Point& point) {
    if (point.position <= n_tokens && point.position > found.position) found = point;
  };
  for (const Point& point : t.kept) look_at(point);
  for (const Point& point : t.bases) look_at(point);
  look_at(t.before);
  look_at(t.newest);
  return found;
}

int StatePoints::kept_tokens(SequenceId sequence, int n_tokens) const {
  const Text& t = text(sequence);
  return n_tokens >= t.bases.front().position ? n_tokens : nearest(t, n_tokens).position;
}

StatePoints::Way StatePoints::go_back(SequenceId sequence, int n_tokens) {
  Text& t = text(sequence);
  CHECK(n_tokens <= t.newest.position);
  const Point start = hold(nearest(t, n_tokens));
  const bool by_updates = n_tokens >= t.bases.front().position;
  cut(t.kept, n_tokens);
  cut(t.bases, n_tokens);
  if (t.bases.empty()) t.bases.push_back(hold(start));
  let_go(t.before);
  let_go(t.newest);
  const Way way = arrive(t, start, by_updates ? n_tokens : start.position);
  add_base(t, 0);
  return way;
}

// At a position that a point, which the caller holds, or updates behind it lead to.
StatePoints::Way StatePoints::arrive(Text& t, Point start, int n_tokens) {
  t.newest = start;
  if (start.position == n_tokens) return {.reached = n_tokens};
  const int32_t made = take();
  t.before = start;  // so that it stays until the new one is made
  t.newest = hold({n_tokens, made});
  return {n_tokens, n_tokens - start.position, {start.state, t.newest.state}};
}

int32_t StatePoints::replace(SequenceId sequence, int n_tokens) {
  go_back(sequence, 0);
  Text& t = text(sequence);
  t.newest = hold({n_tokens, take()});
  keep(t, /*ends_message=*/true);
  cut(t.bases, -1);
  t.bases.push_back(hold(t.newest));
  return t.newest.state;
}

StatePoints::Way StatePoints::fork(SequenceId from, SequenceId to, int n_tokens) {
  go_back(to, 0);
  Text &source = text(from), &t = text(to);
  const Point start = hold(nearest(source, n_tokens));
  const bool by_updates = n_tokens >= source.bases.front().position;
  for (const Point& point : source.kept) {
    if (point.position <= n_tokens) t.kept.push_back(hold(point));
  }
  cut(t.bases, -1);
  const Way way = arrive(t, start, by_updates ? n_tokens : start.position);
  t.bases.push_back(hold(t.newest));
  return way;
}

}  // namespace sluice::policy
