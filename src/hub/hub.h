// A hub of models, as Hugging Face's is one: what a repository holds, parts of its files, and whole
// models fetched into a folder.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "hub/answer_head.h"
#include "hub/download.h"
#include "hub/repo_files.h"
#include "hub/repo_name.h"

namespace sluice::hub {

struct HubOptions {
  std::string endpoint;  // http://host or https://host
  DownloadOptions download;
};

class Hub {
 public:
  // Throws Errc::bad_request for an endpoint that is no address.
  explicit Hub(HubOptions options);

  // All files of a repository.
  std::vector<RepoFile> list(const RepoName& name) const;
  // The first bytes of a file: 1 MiB, or 2, 4, 8 ... up to the end of its GGUF directory.
  std::vector<std::byte> header(const RepoName& name, const RepoFile& file) const;
  // A file, under this path.
  DownloadResult fetch(const RepoName& name, const RepoFile& file, const std::string& path,
                       const DownloadOptions::OnProgress& progress) const;

  std::string file_url(const RepoName& name, const std::string& path) const;

 private:
  struct Page {
    std::string text;
    std::string next;
  };
  Page get(const std::string& url, const WantedPart* part = nullptr) const;

  HubOptions options_;
};

}  // namespace sluice::hub
