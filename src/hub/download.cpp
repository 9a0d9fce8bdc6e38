// See download.h.
// SPDX-License-Identifier: Apache-2.0
#include "hub/download.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <deque>
#include <memory>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "hub/hash_follower.h"
#include "hub/request.h"

namespace sluice::hub {
namespace {

using Clock = std::chrono::steady_clock;
using Advice = Judgement::Advice;

constexpr int kPollMs = 100;
// A piece that goes on by less than this each time is not going on.
constexpr uint64_t kProgressBytes = 64 * kKiB;

Clock::duration seconds(double n) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(n));
}

// A peer that closes, and a limit on the size of files, are errors here and no signals.
class QuietSignals {
 public:
  QuietSignals() {
    struct sigaction ignore = {};
    ignore.sa_handler = SIG_IGN;
    for (size_t i = 0; i < 2; ++i) sigaction(kSignals[i], &ignore, &before_[i]);
  }
  ~QuietSignals() {
    for (size_t i = 0; i < 2; ++i) sigaction(kSignals[i], &before_[i], nullptr);
  }
  QuietSignals(const QuietSignals&) = delete;
  QuietSignals& operator=(const QuietSignals&) = delete;

 private:
  static constexpr int kSignals[] = {SIGPIPE, SIGXFSZ};
  struct sigaction before_[2];
};

// A connection, and the piece it is at.
struct Lane {
  explicit Lane(const Connection& connection) : request(connection) {}
  Request request;
  Range left;  // what is still to come of the piece; empty: none
  Range asked;
  Judgement judgement;
  Clock::time_point not_before = {};
  int n_failures = 0;  // in a row
  bool is_running = false;
};

class Download {
 public:
  Download(const std::string& url, const std::string& path, const FileIdentity& identity,
           const DownloadOptions& options, const DownloadOptions::OnProgress& progress)
      : url_(url),
        identity_(identity),
        options_(options),
        progress_(progress),
        file_(path, identity),
        multi_(curl().multi_init()),
        follower_(file_.descriptor(), identity.n_bytes) {
    if (!multi_) throw Error(Errc::out_of_memory, "libcurl gives no handle: out of memory");
    result_.n_before = file_.landed().n_bytes();
  }
  ~Download() {
    for (const auto& lane : lanes_) {
      if (lane->is_running) curl().multi_remove_handle(multi_.get(), lane->request.handle());
    }
  }
  Download(const Download&) = delete;
  Download& operator=(const Download&) = delete;

  DownloadResult run() {
    try {
      fetch();
      await_hash();
    } catch (...) {
      file_.keep();
      throw;
    }
    check_hash();
    file_.commit();
    return result_;
  }

 private:
  void fetch() {
    const uint64_t piece_bytes = piece_bytes_for(identity_.n_bytes);
    const auto pieces = pieces_of(file_.landed(), identity_.n_bytes, piece_bytes);
    pieces_.assign(pieces.begin(), pieces.end());
    const auto n_lanes =
        std::min<size_t>(pieces_.size(), static_cast<size_t>(options_.n_connections));
    for (size_t i = 0; i < n_lanes; ++i) {
      lanes_.push_back(std::make_unique<Lane>(options_.connection));
    }
    do {
      report(DownloadOptions::Step::fetching, file_.landed().n_bytes());
      start_lanes();
      int n_running = 0;
      curl().multi_perform(multi_.get(), &n_running);
      end_lanes();
      curl().multi_poll(multi_.get(), nullptr, 0, has_ready_lane() ? 0 : kPollMs, nullptr);
    } while (file_.landed().n_bytes() < identity_.n_bytes);
  }

  // A lane that can begin at once: with a piece that waits for nothing, or one of those left.
  bool has_ready_lane() const {
    const auto now = Clock::now();
    return std::ranges::any_of(lanes_, [&](const auto& lane) {
      const bool has_work = lane->left.n_bytes() > 0 || !pieces_.empty();
      return !lane->is_running && has_work && now >= std::max(lane->not_before, all_wait_until_);
    });
  }

  void start_lanes() {
    const auto now = Clock::now();
    if (now < all_wait_until_) return;
    for (const auto& lane : lanes_) {
      if (lane->is_running || now < lane->not_before) continue;
      if (lane->left.n_bytes() == 0) {
        if (pieces_.empty()) continue;
        lane->left = pieces_.front();
        pieces_.pop_front();
      }
      start(*lane);
    }
  }

  void start(Lane& lane) {
    lane.asked = lane.left;
    lane.judgement = {};
    lane.request.prepare(url_, lane.asked,
                         [this, &lane](const AnswerHead& head, std::span<const std::byte> bytes) {
                           return take(lane, head, bytes);
                         });
    curl().multi_add_handle(multi_.get(), lane.request.handle());
    lane.is_running = true;
  }

  // Bytes of a lane's answer, which is judged before the first of them is written.
  bool take(Lane& lane, const AnswerHead& head, std::span<const std::byte> bytes) {
    if (lane.left == lane.asked && !accepts(lane, head)) return false;
    const auto n = std::min<uint64_t>(bytes.size(), lane.left.n_bytes());
    file_.write(lane.left.begin, bytes.first(n));
    lane.left.begin += n;
    result_.n_fetched += n;
    return n == bytes.size();
  }

  bool accepts(Lane& lane, const AnswerHead& head) {
    lane.judgement = judge(head, {lane.asked, identity_.n_bytes, identity_.sha256, etag_});
    if (lane.judgement.advice != Advice::take) return false;
    if (etag_.empty()) etag_ = head.etag;
    return true;
  }

  void end_lanes() {
    int n_left = 0;
    while (const CURLMsg* message = curl().multi_info_read(multi_.get(), &n_left)) {
      if (message->msg != CURLMSG_DONE) continue;
      const CURLcode code = message->data.result;
      for (const auto& lane : lanes_) {
        if (!lane->is_running || lane->request.handle() != message->easy_handle) continue;
        curl().multi_remove_handle(multi_.get(), lane->request.handle());
        lane->is_running = false;
        end(*lane, code);
        break;  // the message is gone with the handle
      }
    }
  }

  void end(Lane& lane, CURLcode code) {
    lane.request.rethrow();
    if (lane.left.n_bytes() == 0) {
      lane.n_failures = 0;
      return;
    }
    // An answer without a body was not judged yet.
    if (code == CURLE_OK && lane.left == lane.asked) accepts(lane, lane.request.head());
    const std::string why = !lane.judgement.text.empty() ? lane.judgement.text
                            : code == CURLE_OK           ? "the answer ended too early"
                                                         : lane.request.describe(code);
    if (lane.judgement.advice == Advice::give_up) give_up(why);
    if (code == CURLE_TOO_MANY_REDIRECTS || code == CURLE_PEER_FAILED_VERIFICATION) give_up(why);
    ++result_.n_failures;
    const bool went_on = lane.left.begin - lane.asked.begin >= kProgressBytes;
    lane.n_failures = went_on ? 1 : lane.n_failures + 1;
    if (lane.n_failures > options_.n_retries) {
      give_up(cat(why, ", ", lane.n_failures, " times in a row"));
    }
    const double retry_after = lane.request.retry_after();
    if (retry_after > kMaxRetryAfter) {
      give_up(cat(why, ": the server asks to come back in ", retry_after, " s"));
    }
    lane.not_before = Clock::now() + seconds(wait_seconds(lane.n_failures, retry_after));
    if (retry_after > 0.0) all_wait_until_ = std::max(all_wait_until_, lane.not_before);
  }

  [[noreturn]] void give_up(const std::string& why) const {
    const uint64_t n_here = file_.landed().n_bytes();
    throw Error(Errc::bad_file,
                cat(url_, ": ", why,
                    n_here == 0 ? "" : cat("; the ", format_bytes(n_here), " that came are kept")));
  }

  void report(DownloadOptions::Step step, uint64_t n_done) {
    follower_.advance(file_.landed().first_gap());
    file_.note_synced(follower_.n_synced());
    if (progress_) progress_(step, n_done);
    if (options_.connection.stops()) {
      throw Error(Errc::cancelled, cat("stopped; the ", format_bytes(file_.landed().n_bytes()),
                                       " that came are kept: run it again to go on"));
    }
  }

  void await_hash() {
    do {
      report(DownloadOptions::Step::checking, follower_.n_hashed());
      curl().multi_poll(multi_.get(), nullptr, 0, kPollMs / 10, nullptr);
    } while (!follower_.is_over());
  }

  void check_hash() {
    const std::string found = follower_.hex();
    if (identity_.sha256.empty() || found == identity_.sha256) return;
    file_.discard();
    throw Error(Errc::bad_file, cat(url_, ": what came has the SHA-256 ", found, "; expected ",
                                    identity_.sha256, ": it was thrown away, run it again"));
  }

  const QuietSignals quiet_;
  const std::string url_;
  const FileIdentity identity_;
  const DownloadOptions& options_;
  const DownloadOptions::OnProgress& progress_;
  PartialFile file_;
  MultiHandle multi_;
  HashFollower follower_;  // reads the file: goes before it
  std::deque<Range> pieces_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::string etag_;
  Clock::time_point all_wait_until_ = {};
  DownloadResult result_;
};

}  // namespace

DownloadResult download(const std::string& url, const std::string& path,
                        const FileIdentity& identity, const DownloadOptions& options,
                        const DownloadOptions::OnProgress& progress) {
  return Download(url, path, identity, options, progress).run();
}

}  // namespace sluice::hub
