// See state_points.h.
// SPDX-License-Identifier: Apache-2.0
#include "policy/cache/state_points.h"

#include <limits>

#include "base/check.h"

namespace sluice::policy {
namespace {

// A text mostly goes back to one of its newest points: behind the last question, the answer before.
constexpr size_t kNewestPoints = 3;

}  // namespace

StatePoints::StatePoints(int n_sequences)
    : n_holders_(static_cast<size_t>(n_states(n_sequences)), 0),
      texts_(static_cast<size_t>(n_sequences)) {
  for (int32_t i = n_states(n_sequences) - 1; i >= 0; --i) free_.push_back(i);
  for (Text& text : texts_) text.bases = {{}};
}

// Two states and two bases for each sequence are fewer than there are places, so that there is
// always a kept point to give up. One that others hold too gives no place back.
int32_t StatePoints::take() {
  constexpr int kAny = std::numeric_limits<int>::max();
  while (free_.empty()) {
    CHECK(give_up_a_point(kNewestPoints, 1) || give_up_a_point(0, 1) || give_up_a_point(0, kAny));
  }
  const int32_t state = free_.back();
  free_.pop_back();
  return state;
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
// Not one of a text's newest; false where there are no others that so few hold.
bool StatePoints::give_up_a_point(size_t n_newest, int n_holders) {
  Points* whose = nullptr;
  size_t which = 0;
  int least = 0;
  for (Text& text : texts_) {
    Points& kept = text.kept;
    for (size_t i = 0; i + n_newest < kept.size(); ++i) {
      if (n_holders_[static_cast<size_t>(kept[i].state)] > n_holders) continue;
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

StatePoints::Places StatePoints::begin_step(SequenceId sequence) {
  Text& t = text(sequence);
  CHECK(t.written < 0);
  let_go(t.before);
  t.written = take();
  return {t.newest.state, t.written};
}

void StatePoints::end_step(SequenceId sequence, int end, bool is_kept) {
  Text& t = text(sequence);
  CHECK(t.written >= 0 && end > t.newest.position);
  const int n_rows = end - t.newest.position;
  t.before = t.newest;
  t.newest = hold({end, t.written});
  t.written = -1;
  if (is_kept) t.kept.push_back(hold(t.newest));
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
  t.before = start;  // so that it stays until the new one is made
  t.newest = hold({n_tokens, take()});
  return {n_tokens, n_tokens - start.position, {start.state, t.newest.state}};
}

int32_t StatePoints::replace(SequenceId sequence, int n_tokens) {
  go_back(sequence, 0);
  Text& t = text(sequence);
  t.newest = hold({n_tokens, take()});
  t.kept.push_back(hold(t.newest));
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
