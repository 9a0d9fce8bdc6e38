// How people name a model of a hub: user/repo, user/repo:quant, or a file of a repository. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sluice::hub {

// What stands before such a name where a file's path or another model's name could stand as well:
// hf.co/user/repo:quant, as Ollama's users write it.
inline constexpr std::string_view kHubPrefix = "hf.co/";
// The host that is asked where HF_ENDPOINT names no other.
inline constexpr std::string_view kHubHost = "huggingface.co";

struct RepoName {
  std::string user;
  std::string repo;
  std::string quant = {};  // empty: none was named
  std::string file = {};   // a path in the repository; empty: chosen by the quant

  std::string id() const { return user + "/" + repo; }
  std::string text() const;  // as read by parse_repo_name()
};

// "user/repo", "user/repo:quant", "user/repo/path/file.gguf"; before it may stand hf.co/, or the
// address of the repository's page up to there. Throws Errc::bad_request for anything else.
RepoName parse_repo_name(std::string_view text);

// The same where the name begins with hf.co/ or such an address; nothing where it does not.
std::optional<RepoName> parse_hub_name(std::string_view text);

// Whether a path out of a listing can be a file below a folder of ours: no "..", no root, no
// control characters, nothing hidden.
bool is_safe_path(std::string_view path);

}  // namespace sluice::hub
