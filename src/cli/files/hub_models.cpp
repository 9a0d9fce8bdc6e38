// See hub_models.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/files/hub_models.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/units.h"
#include "cli/files/model_folders.h"
#include "cli/files/model_registry.h"
#include "cli/files/model_stores.h"
#include "cli/files/sha256_sums.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/progress_bar.h"
#include "cli/terminal/terminal_text.h"
#include "hub/hub.h"

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;
using Step = hub::DownloadOptions::Step;

hub::Hub make_hub(const PullOptions& options, const std::function<bool()>& should_stop = {}) {
  if (const std::string offline = environment("HF_HUB_OFFLINE"); offline == "1") {
    throw Error(Errc::bad_request, "HF_HUB_OFFLINE=1 forbids to fetch anything; unset it");
  }
  hub::HubOptions out;
  out.endpoint = environment("HF_ENDPOINT");
  if (out.endpoint.empty()) out.endpoint = cat("https://", hub::kHubHost);
  out.download.connection = {environment("HF_TOKEN"), options.stall_seconds, should_stop};
  out.download.n_connections = options.n_connections;
  out.download.n_retries = options.n_retries;
  return hub::Hub(out);
}

// Fetching several files as one piece of work.
class Pull {
 public:
  Pull(const hub::RepoName& name, const PullOptions& options)
      : name_(name),
        options_(options),
        folder_(cat(pull_folder(), "/", name.id())),
        sums_(folder_ + "/SHA256SUMS") {}

  PulledModel run() {
    const auto start = std::chrono::steady_clock::now();
    try {
      hub::Hub hub = make_hub(options_, [this] { return stops(); });
      const auto models = hub::models_of(hub.list(name_));
      fetch(hub, hub::choose_model(models, name_));
    } catch (const Error& error) {
      bar_.reset();
      if (error.code() != Errc::cancelled) throw;
      print_note(error.what());
      end_by_interrupt();
      throw;  // where the signal is blocked
    }
    result_.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return result_;
  }

 private:
  bool stops() { return stops_ = stops_ || interrupt_.was_pressed(); }

  std::string path_of(const hub::RepoFile& file) const { return cat(folder_, "/", file.path); }

  void fetch(hub::Hub& hub, const hub::RepoModel& model) {
    std::vector<const hub::RepoFile*> missing;
    for (const hub::RepoFile& file : model.files) {
      if (!is_here(file)) missing.push_back(&file);
    }
    announce(model, missing);
    for (const hub::RepoFile* file : missing) fetch_file(hub, *file);
    bar_.reset();
    result_.n_bytes = model.n_bytes();
    result_.path = path_of(model.files.front());
    result_.name = cat(name_.id(), ":", hub::quant_of(model.stem));
    for (const StoredModel& stored :
         models_in_repo(pull_folder(), "pulled", name_.user, name_.repo)) {
      if (stored.path == result_.path) result_.name = stored.name;
    }
  }

  // By size, and by the hash that was found when it was pulled. One that was put here by hand is
  // hashed now.
  bool is_here(const hub::RepoFile& file) {
    std::error_code error;
    const std::string path = path_of(file);
    if (fs::file_size(path, error) != file.n_bytes || error) return false;
    if (file.sha256.empty()) return true;
    std::optional<std::string> sum = sums_.find(file.path);
    if (!sum) {
      ProgressBar bar("checking what is here");
      sum = sha256_of(path, bar.updater());
      sums_.set(file.path, *sum);
    }
    return *sum == file.sha256;
  }

  void announce(const hub::RepoModel& model, const std::vector<const hub::RepoFile*>& missing) {
    uint64_t n_kept = 0;
    for (const hub::RepoFile* file : missing) {
      n_to_come_ += file->n_bytes;
      n_kept += hub::bytes_kept(path_of(*file), {file->n_bytes, file->sha256});
    }
    if (missing.empty()) return;
    hub::require_room(folder_, n_to_come_ - std::min(n_to_come_, n_kept));
    std::fprintf(stderr, "pulling %s: %s in %zu file%s to %s%s\n",
                 one_line(cat(name_.id(), ":", hub::quant_of(model.stem))).c_str(),
                 format_bytes(n_to_come_).c_str(), missing.size(), missing.size() == 1 ? "" : "s",
                 one_line(folder_).c_str(),
                 n_kept == 0 ? "" : cat(", ", format_bytes(n_kept), " are here already").c_str());
  }

  void fetch_file(hub::Hub& hub, const hub::RepoFile& file) {
    sums_.forget(file.path);  // of the one before, if there was one
    const auto result = hub.fetch(name_, file, path_of(file),
                                  [&](Step step, uint64_t n_done) { show(step, file, n_done); });
    result_.n_fetched += result.n_fetched;
    result_.n_failures += result.n_failures;
    n_come_ += file.n_bytes;
    if (file.sha256.empty()) {
      print_warning(cat(file.path, ": the hub names no SHA-256 of it; its size alone was checked"));
    } else {
      sums_.set(file.path, file.sha256);
    }
  }

  // One bar for all files; the last step of a file, where it takes long, has its own.
  void show(Step step, const hub::RepoFile& file, uint64_t n_done) {
    if (!bar_ || step != step_) {
      const bool checks = step == Step::checking;
      bar_.emplace(checks ? "checking" : "pulling");
      bar_->begin_at(checks ? n_done : n_come_ + n_done);
      step_ = step;
    }
    if (step == Step::checking) {
      bar_->update(n_done, file.n_bytes);
    } else {
      bar_->update(n_come_ + n_done, n_to_come_);
    }
  }

  const hub::RepoName name_;
  const PullOptions options_;
  const std::string folder_;
  Sha256Sums sums_;
  InterruptGuard interrupt_;
  bool stops_ = false;
  std::optional<ProgressBar> bar_;
  Step step_ = Step::fetching;
  uint64_t n_to_come_ = 0, n_come_ = 0;
  PulledModel result_;
};

// The headers of a model that is not here, under names that begin with hf.co/.
DescribedModel describe_remote(const hub::RepoName& name) {
  const hub::Hub hub = make_hub({});
  const auto models = hub::models_of(hub.list(name));
  const hub::RepoModel& model = hub::choose_model(models, name);
  const std::string prefix = cat(hub::kHubPrefix, name.id(), "/");
  const auto open = [&](const std::string& path) {
    for (const hub::RepoFile& file : model.files) {
      if (prefix + file.path != path) continue;
      return gguf::MappedFile::of_header(path, hub.header(name, file), file.n_bytes);
    }
    throw Error(Errc::bad_file, cat(path, ": the repository has no such file"));
  };
  const std::string first = prefix + model.files.front().path;
  return {gguf::ModelFile::open(first, open), first,
          cat(name.id(), name.file.empty() ? ":" + hub::quant_of(model.stem) : "/" + name.file)};
}

// Without a type in the name the hub says which one is meant; one that is here will do where it
// cannot be asked.
std::optional<std::string> substitute(const hub::RepoName& name, const Error& why) {
  if (why.code() != Errc::bad_request) return std::nullopt;
  const auto here = find_in_repos(name, /*usual_only=*/false);
  if (!here) return std::nullopt;
  print_note(cat(why.what(), "; ", here->name, " is here and is used"));
  return here->path;
}

}  // namespace

PulledModel pull_model(const hub::RepoName& name, const PullOptions& options) {
  return Pull(name, options).run();
}

std::vector<hub::RepoModel> list_repo(const hub::RepoName& name, const PullOptions& options) {
  return hub::models_of(make_hub(options).list(name));
}

std::string hub_model_file(const hub::RepoName& name) {
  if (const auto here = find_in_repos(name, /*usual_only=*/true)) return here->path;
  try {
    return pull_model(name, {}).path;
  } catch (const Error& error) {
    if (const auto here = substitute(name, error)) return *here;
    throw;
  }
}

DescribedModel describe_model(const std::string& name) {
  const auto remote = hub::parse_hub_name(name);
  if (!remote) {
    const std::string path = find_model(name);
    return {gguf::ModelFile::open(path), path};
  }
  if (const auto here = find_in_repos(*remote, /*usual_only=*/true)) {
    return {gguf::ModelFile::open(here->path), here->path};
  }
  try {
    return describe_remote(*remote);
  } catch (const Error& error) {
    if (const auto here = substitute(*remote, error)) {
      return {gguf::ModelFile::open(*here), *here};
    }
    throw;
  }
}

}  // namespace sluice::cli
