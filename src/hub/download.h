// Fetches one file: pieces of it over several connections at once, each taken up where it broke
// off, written to a partial_file.h, hashed on the way, and named only when size and hash are right.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "hub/connection.h"
#include "hub/partial_file.h"

namespace sluice::hub {

struct DownloadOptions {
  Connection connection;
  int n_connections = 4;
  int n_retries = 8;  // failures of a piece in a row that are borne
  // How many bytes of the file are here, those of earlier attempts included; then how many are
  // checked, which is the last step, and a short one where all came now.
  enum class Step { fetching, checking };
  using OnProgress = std::function<void(Step step, uint64_t n_done)>;
};

struct DownloadResult {
  uint64_t n_before = 0;   // bytes that were here already
  uint64_t n_fetched = 0;  // bytes of the file that came now
  int n_failures = 0;      // of transfers, which were taken up again
};

// The file of `url` under `path`. Throws Error: Errc::cancelled where it was stopped,
// Errc::bad_file or Errc::bad_request for what cannot be had. What has come stays for the next
// attempt, unless its hash is wrong.
DownloadResult download(const std::string& url, const std::string& path,
                        const FileIdentity& identity, const DownloadOptions& options,
                        const DownloadOptions::OnProgress& progress);

}  // namespace sluice::hub
