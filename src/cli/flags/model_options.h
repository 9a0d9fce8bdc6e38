// The flags that every command which computes with a model shares.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/files/model_registry.h"
#include "cli/flags/device_flags.h"
#include "sluice/sluice.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace sluice::gguf {
class ModelFile;
}  // namespace sluice::gguf

namespace sluice::cli {

// Headings of the help.
inline constexpr const char* kModelGroup = "Model";
inline constexpr const char* kPlacementGroup = "Placement";

struct ModelOptions {
  std::string name;  // a file, or a name that model_registry.h knows
  std::string tokens;
  int n_threads = 0;
  WeightMemory weights = WeightMemory::automatic;
  DeviceFlags device;
  SessionOptions session;  // with its device once the flags are parsed

  enum class Use { planning, computing };
  // run sorts its words itself (words.h); then -m is a flag alone, and this names the model in
  // time.
  std::function<void()> sort_words;

  // The model (required unless there is a name already), -t, -c, --weights, -ctk, -ctv,
  // --prefill-chunk, and those of device_flags.h. Must outlive the parse.
  void add_to(CLI::App& command, Use use = Use::computing);
  // --tokens
  CLI::Option* add_tokens_to(CLI::App& command);

  // The file of the model; throws as find_model() does.
  std::string file() const { return find_model(name); }

  // With a progress bar on a terminal.
  Model load() const;

  // Says where the context that was asked for is larger than the trained one, and what rope scaling
  // the file has. For a session that is open: where it cannot be, that is said alone.
  void warn_of_context(const Model& model) const;
  void warn_of_context(const gguf::ModelFile& opened) const;

  // "1,2,3" -> ids; throws Errc::bad_request for what is not a number.
  std::vector<TokenId> token_ids() const;
};

// -m, --model, or the first word.
CLI::Option* add_model_name(CLI::App& command, std::string& name);

// With a progress bar too, while experts are loaded; what the placement warns about is printed.
Session open_session(const Model& model, SessionOptions options);

}  // namespace sluice::cli
