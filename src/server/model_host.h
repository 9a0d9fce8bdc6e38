// Owns the model that is served, and changes it while the server runs: loads, unloads, swaps. A
// request holds its model until it ends; a model goes when nobody holds it any more. One thread of
// its own does all that takes long; requests wait for it in a bounded queue.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "server/api_error.h"
#include "server/model_service.h"
#include "server/model_source.h"

namespace sluice::server {

struct ModelHostOptions {
  ModelSource source;
  EngineOptions engine;              // its session for the first model; for others the source says
  bool swaps = false;                // requests choose their model by its name
  std::optional<double> keep_alive;  // seconds that an unused model stays; none: for ever
  size_t n_waiting = 64;             // requests, while there is no model for them
  std::function<void(const std::string& line)> log;
};

class ModelHost {
 public:
  // A request's hold on the model. It must end before the host does.
  using Handle = std::shared_ptr<const ModelService>;
  using Run = std::function<void(Handle)>;  // must not throw
  using Fail = std::function<void(const ApiError&)>;

  ModelHost(const Model& model, ModelHostOptions options);
  ~ModelHost();
  ModelHost(const ModelHost&) = delete;
  ModelHost& operator=(const ModelHost&) = delete;

  // Calls one of the two: at once where the model is there, else from the host's thread, once those
  // that asked before have been served. The empty name is the model that is loaded, or was last.
  // Throws ApiError for a name that no model has (404), and where too many wait already (503).
  void use(const std::string& name, Run run, Fail fail);
  // Once all running answers have ended; `run` gets no model. The next use() loads it again.
  void unload(Run run, Fail fail);
  // Instead of the options'; it holds for the model that is loaded.
  void set_keep_alive(std::optional<double> seconds);
  // No more changes: whoever waits is refused, and what runs is completed.
  void end();

  // The model that is loaded; null: none. This does not count as a use of it.
  Handle peek() const;
  // As peek(); throws ApiError (503) where there is none.
  Handle loaded() const;

  struct Known {
    std::string name, path;
    enum class State { loaded, loading, unloaded } state = State::unloaded;
  };
  std::vector<Known> list() const;  // by name
  std::string name() const;         // of the model that is loaded, or was last
  // What would live where, as `sluice plan --json` says it. Throws ApiError and Error.
  Json plan(const std::string& name) const;

  struct Counts {
    int64_t n_loaded = 0, n_unloaded = 0;
  };
  Counts counts() const;
  bool is_loading() const;
  bool swaps() const { return options_.swaps; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Job {
    std::string name;
    bool is_unload = false;
    Run run;
    Fail fail;
  };
  enum class Kind { use, peek };

  Handle handle(Kind kind) const;
  void release(Kind kind) const;
  void push(Job job, size_t n_most);
  void work();
  bool is_idle() const;
  void carry_out(const Job& job);
  std::optional<ApiError> switch_to(const std::string& name);
  void load(const std::string& name);
  bool retire();  // false: the server ends before the model can go
  std::string path_of(const std::string& name) const;  // empty: there is no such model

  ModelHostOptions options_;
  const std::string first_name_, first_path_;

  mutable std::mutex mutex_;  // for what follows
  mutable std::condition_variable changed_;
  std::unique_ptr<ModelService> service_;
  std::string name_;     // of the model that is loaded, or was last
  std::string loading_;  // empty: none is
  mutable int n_held_ = 0;
  mutable Clock::time_point last_used_ = Clock::now();
  std::optional<double> keep_alive_;
  std::deque<Job> jobs_;
  bool is_busy_ = false;  // with a job that is no longer in the queue
  std::atomic<bool> ends_{false};
  Counts counts_;
  std::thread thread_;
};

}  // namespace sluice::server
