// See hub.h.
// SPDX-License-Identifier: Apache-2.0
#include "hub/hub.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/units.h"
#include "gguf/byte_reader.h"
#include "gguf/parse.h"
#include "hub/request.h"

namespace sluice::hub {
namespace {

using Advice = Judgement::Advice;

constexpr size_t kMaxPageBytes = 64 * kMiB;
constexpr int kMaxPages = 100;
constexpr uint64_t kFirstHeaderBytes = kMiB;
constexpr uint64_t kMaxHeaderBytes = 512 * kMiB;  // far beyond any vocabulary

std::string encoded(std::string_view path) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') ||
                          std::string_view("-._~/").find(c) != std::string_view::npos;
    if (is_plain) {
      out += c;
    } else {
      out += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return out;
}

}  // namespace

Hub::Hub(HubOptions options) : options_(std::move(options)) {
  std::string& endpoint = options_.endpoint;
  while (endpoint.ends_with('/')) endpoint.pop_back();
  const bool is_address = endpoint.starts_with("http://") || endpoint.starts_with("https://");
  if (!is_address || endpoint.find_first_of(" \t\r\n") != std::string::npos) {
    throw Error(Errc::bad_request, cat("HF_ENDPOINT is '", endpoint.substr(0, 120),
                                       "'; expected an address such as https://", kHubHost));
  }
}

std::string Hub::file_url(const RepoName& name, const std::string& path) const {
  return cat(options_.endpoint, "/", name.id(), "/resolve/main/", encoded(path));
}

// A short answer as a whole, or a part of a file. Faults that may pass are borne a few times; a
// host that cannot be reached at all is said at once.
auto Hub::get(const std::string& url, const WantedPart* part) const -> Page {
  Request request(options_.download.connection);
  for (int n_failures = 1;; ++n_failures) {
    std::string text;
    Judgement judgement;
    const auto judged = [&](const AnswerHead& head) {
      return part ? judge(head, *part) : judge_status(head.status);
    };
    request.prepare(url, part ? std::optional(part->range) : std::nullopt,
                    [&](const AnswerHead& head, std::span<const std::byte> bytes) {
                      if (text.empty()) judgement = judged(head);
                      if (judgement.advice != Advice::take) return false;
                      text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
                      return text.size() <= (part ? part->range.n_bytes() : kMaxPageBytes);
                    });
    const CURLcode code = curl().easy_perform(request.handle());
    request.rethrow();
    if (code == CURLE_OK && text.empty()) judgement = judged(request.head());
    const bool is_short = part && text.size() != part->range.n_bytes();
    if (code == CURLE_OK && judgement.advice == Advice::take && !is_short) {
      return {std::move(text), request.head().next_page};
    }
    const std::string why = !judgement.text.empty() ? judgement.text
                            : code == CURLE_OK      ? "the answer ended too early"
                                                    : request.describe(code);
    if (code == CURLE_ABORTED_BY_CALLBACK) throw Error(Errc::cancelled, "stopped");
    if (is_unreachable(code)) {
      throw Error(Errc::bad_request, cat(url, ": cannot be reached (", why,
                                         "); check the network, and HF_ENDPOINT where it is set"));
    }
    const double wait = wait_seconds(n_failures, request.retry_after());
    if (judgement.advice == Advice::give_up || n_failures > options_.download.n_retries ||
        wait > kMaxRetryAfter) {
      throw Error(Errc::bad_request, cat(url, ": ", why));
    }
    const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(wait);
    while (std::chrono::steady_clock::now() < until) {
      if (options_.download.connection.stops()) throw Error(Errc::cancelled, "stopped");
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
}

std::vector<RepoFile> Hub::list(const RepoName& name) const {
  std::vector<RepoFile> files;
  std::string url = cat(options_.endpoint, "/api/models/", name.id(), "/tree/main?recursive=true");
  for (int n = 0; n < kMaxPages && !url.empty(); ++n) {
    const Page page = get(url);
    const std::vector<RepoFile> more = parse_listing(page.text, url);
    files.insert(files.end(), more.begin(), more.end());
    // The token goes to this host alone.
    url = page.next.starts_with(options_.endpoint + "/") ? page.next : "";
  }
  return files;
}

std::vector<std::byte> Hub::header(const RepoName& name, const RepoFile& file) const {
  const std::string url = file_url(name, file.path);
  std::vector<std::byte> bytes;
  const uint64_t most = std::min(file.n_bytes, kMaxHeaderBytes);
  for (uint64_t end = std::min(most, kFirstHeaderBytes);; end = std::min(most, 2 * end)) {
    const WantedPart part = {{bytes.size(), end}, file.n_bytes, file.sha256, ""};
    const std::string more = get(url, &part).text;
    const auto added = std::as_bytes(std::span(more));
    bytes.insert(bytes.end(), added.begin(), added.end());
    try {
      gguf::parse_header(bytes, url, file.n_bytes);
      return bytes;
    } catch (const gguf::NeedsMoreBytes&) {
      if (end == most) throw;
    }
  }
}

DownloadResult Hub::fetch(const RepoName& name, const RepoFile& file, const std::string& path,
                          const DownloadOptions::OnProgress& progress) const {
  return download(file_url(name, file.path), path, {file.n_bytes, file.sha256}, options_.download,
                  progress);
}

}  // namespace sluice::hub
