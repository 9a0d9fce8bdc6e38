// See metrics.h.
// SPDX-License-Identifier: Apache-2.0
#include "server/metrics.h"

#include <unistd.h>

#include <algorithm>
#include <concepts>
#include <cstdio>
#include <fstream>

#include "base/error.h"

namespace sluice::server {
namespace {

std::string head(std::string_view name, std::string_view type, std::string_view help) {
  return cat("# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n");
}

std::string digits(double value) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.12g", value);
  return text.data();
}

std::string counter(std::string_view name, double value, std::string_view help) {
  return cat(head(name, "counter", help), name, " ", digits(value), "\n");
}

template <std::integral T>
std::string counter(std::string_view name, T value, std::string_view help) {
  return cat(head(name, "counter", help), name, " ", value, "\n");
}

template <typename T>
std::string gauge(std::string_view name, T value, std::string_view help) {
  return cat(head(name, "gauge", help), name, " ", value, "\n");
}

std::string request_lines(const EngineStats& s) {
  std::string text = head("sluice_answers_total", "counter", "Answers, by how they ended.");
  const std::pair<const char*, int64_t> kinds[] = {{"finished", s.n_finished},
                                                   {"cancelled", s.n_cancelled},
                                                   {"expired", s.n_expired},
                                                   {"failed", s.n_failed},
                                                   {"refused", s.n_refused}};
  for (const auto& [how, n] : kinds) {
    text += cat("sluice_answers_total{end=\"", how, "\"} ", n, "\n");
  }
  text += gauge("sluice_answers_running", s.n_running, "Answers that are computed now.");
  text += gauge("sluice_answers_queued", s.n_queued, "Requests that wait.");
  text += counter("sluice_answers_paused_total", s.n_paused,
                  "Times an answer gave its KV pages to older ones.");
  return text;
}

std::string token_lines(const EngineStats& s) {
  std::string text;
  text += counter("sluice_prompt_tokens_total", s.n_prompt_tokens, "Tokens of prompts computed.");
  text += counter("sluice_reused_tokens_total", s.n_reused_tokens,
                  "Tokens of prompts that were found computed.");
  text += counter("sluice_replayed_tokens_total", s.n_replayed_tokens,
                  "Tokens by whose updates recurrent layers went back.");
  text += counter("sluice_recomputed_tokens_total", s.n_recomputed_tokens,
                  "Tokens computed again for recurrent layers to go back.");
  text += counter("sluice_new_tokens_total", s.n_new_tokens, "Tokens of answers.");
  text += counter("sluice_steps_total", s.n_steps, "Steps of the engine.");
  text += counter("sluice_prompt_seconds_total", s.prompt_seconds,
                  "Seconds of steps with a piece of a prompt.");
  text += counter("sluice_decode_seconds_total", s.decode_seconds, "Seconds of the other steps.");
  text += gauge("sluice_step_decode_rows", s.last_decode_rows, "Answers in the last step.");
  text += gauge("sluice_step_prompt_rows", s.last_prompt_rows, "Prompt tokens in the last step.");
  return text;
}

// What the kernel counts as this program's in RAM, pages of mapped files included.
int64_t resident_bytes() {
  int64_t n_total = 0;
  int64_t n_resident = 0;
  std::ifstream("/proc/self/statm") >> n_total >> n_resident;
  return n_resident * sysconf(_SC_PAGESIZE);
}

std::string memory_lines(const EngineStats& s, const PlacementInfo& placement) {
  std::string text;
  text += gauge("sluice_kv_pages", s.n_pages, "KV pages.");
  text += gauge("sluice_kv_pages_free", s.n_free_pages, "KV pages that nobody uses.");
  text += gauge("sluice_kv_bytes", s.kv_bytes, "Bytes of all KV pages.");
  text += gauge("sluice_kept_texts", s.n_kept_texts, "Texts kept for prompts that begin alike.");
  text += gauge("sluice_vram_bytes", placement.vram_bytes, "Memory taken on the device.");
  text += gauge("sluice_ram_bytes", resident_bytes(), "RAM taken, mapped files included.");
  return text;
}

std::string by_layer(std::string_view name, std::string_view help, const ExpertStats& experts,
                     const std::pair<const char*, int64_t LayerStats::*> (&kinds)[4]) {
  std::string text = head(name, "counter", help);
  for (size_t i = 0; i < experts.layers.size(); ++i) {
    for (const auto& [where, member] : kinds) {
      text +=
          cat(name, "{layer=\"", i, "\",where=\"", where, "\"} ", experts.layers[i].*member, "\n");
    }
  }
  return text;
}

std::string expert_lines(const ExpertStats& experts) {
  const LayerStats all = experts.total();
  std::string text =
      by_layer("sluice_expert_calls_total",
               "Experts that tokens asked for, by layer and by where they were.", experts,
               {{"vram", &LayerStats::n_hits},
                {"staged", &LayerStats::n_staged},
                {"link", &LayerStats::n_link},
                {"cpu", &LayerStats::n_cpu}});
  text += counter("sluice_link_bytes_total", all.link_bytes, "Expert bytes read over the link.");
  text += counter("sluice_copied_bytes_total", experts.copied_bytes,
                  "Expert bytes that the cache had copied to the device.");
  text += counter("sluice_prefetch_wasted_bytes_total", experts.wasted_bytes,
                  "Expert bytes copied ahead and not used.");
  text += counter("sluice_stall_seconds_total", all.stall_seconds,
                  "Seconds that layers waited for bytes on the link.");
  text += counter("sluice_cpu_wait_seconds_total", all.wait_seconds,
                  "Seconds that layers waited for the CPU's rows.");
  return text;
}

}  // namespace

void Histogram::observe(double seconds) {
  const auto bucket = std::ranges::lower_bound(kBounds, seconds) - kBounds.begin();
  const std::scoped_lock lock(mutex_);
  ++counts_[static_cast<size_t>(bucket)];
  sum_ += seconds;
}

std::string Histogram::text(std::string_view name, std::string_view help) const {
  const std::scoped_lock lock(mutex_);
  std::string text = head(name, "histogram", help);
  uint64_t n = 0;
  for (size_t i = 0; i < counts_.size(); ++i) {
    n += counts_[i];
    const std::string bound = i < kBounds.size() ? cat(kBounds[i]) : "+Inf";
    text += cat(name, "_bucket{le=\"", bound, "\"} ", n, "\n");
  }
  return text + cat(name, "_sum ", digits(sum_), "\n", name, "_count ", n, "\n");
}

void Metrics::on_request(const RequestRecord& record) {
  request.observe(record.seconds);
  const std::scoped_lock lock(mutex_);
  ++requests_[{record.method, record.route, record.status}];
  n_gone_ += record.was_gone ? 1 : 0;
}

std::string Metrics::text(const ModelHost& host) const {
  std::string text =
      head("sluice_http_requests_total", "counter", "Requests, by method, route and status.");
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& [key, n] : requests_) {
      const auto& [method, route, status] = key;
      text += cat("sluice_http_requests_total{method=\"", method, "\",route=\"", route,
                  "\",status=\"", status, "\"} ", n, "\n");
    }
    text += counter("sluice_http_disconnects_total", n_gone_,
                    "Clients that left before their answer was complete.");
  }
  text += request.text("sluice_http_request_seconds", "Seconds from a request to its end.");
  text += first_token.text("sluice_first_token_seconds", "Seconds from a request to a token.");
  text += token_gap.text("sluice_token_gap_seconds", "Seconds between two tokens of an answer.");
  const ModelHost::Counts counts = host.counts();
  text += counter("sluice_models_loaded_total", counts.n_loaded, "Models that were loaded.");
  text += counter("sluice_models_unloaded_total", counts.n_unloaded, "Models that were unloaded.");
  const ModelHost::Handle model = host.peek();
  if (!model) return text;
  const EngineStats stats = model->engine().stats();
  return text + request_lines(stats) + token_lines(stats) +
         memory_lines(stats, model->engine().placement()) + expert_lines(stats.experts);
}

}  // namespace sluice::server
