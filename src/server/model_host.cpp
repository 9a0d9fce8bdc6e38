// See model_host.h.
// SPDX-License-Identifier: Apache-2.0
#include "server/model_host.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/error.h"

namespace sluice::server {
namespace {

// Clients see names of models, not where their files are.
ApiError load_error(const std::exception& error, const std::string& name, const std::string& path) {
  std::string why = error.what();
  for (size_t at = 0; (at = why.find(path, at)) != std::string::npos; at += name.size()) {
    why.replace(at, path.size(), name);
  }
  return ApiError(500, cat("the model ", name, " could not be loaded: ", why), "model",
                  "model_load_failed");
}

std::string name_of(const ModelInfo& info) {
  return std::filesystem::path(info.path).stem().string();
}

ApiError ending() { return ApiError(503, "the server is ending; ask another one"); }

ApiError unknown_model() {
  return ApiError(404, "there is no such model; GET /models lists those there are", "model",
                  "model_not_found");
}

}  // namespace

ModelHost::ModelHost(const Model& model, ModelHostOptions options)
    : options_(std::move(options)),
      first_name_(name_of(model.info())),
      first_path_(model.info().path),
      service_(std::make_unique<ModelService>(model, options_.engine, first_name_)),
      keep_alive_(options_.keep_alive) {
  name_ = first_name_;
  counts_.n_loaded = 1;
  thread_ = std::thread([this] { work(); });
}

ModelHost::~ModelHost() {
  end();
  service_.reset();  // without the lock, which the requests that it ends take to let go of it
}

void ModelHost::end() {
  {
    const std::scoped_lock lock(mutex_);
    ends_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  if (service_) service_->engine().drain();
}

void ModelHost::use(const std::string& name, Run run, Fail fail) {
  Handle model;
  {
    const std::scoped_lock lock(mutex_);
    const bool is_free = jobs_.empty() && !is_busy_ && !ends_;
    if (is_free && service_ && (name.empty() || name == name_)) model = handle(Kind::use);
  }
  if (model) return run(std::move(model));
  if (!name.empty() && path_of(name).empty()) throw unknown_model();
  push({.name = name, .run = std::move(run), .fail = std::move(fail)}, options_.n_waiting);
}

void ModelHost::unload(Run run, Fail fail) {
  push({.is_unload = true, .run = std::move(run), .fail = std::move(fail)}, options_.n_waiting);
}

void ModelHost::push(Job job, size_t n_most) {
  const std::scoped_lock lock(mutex_);
  if (ends_) throw ending();
  if (jobs_.size() >= n_most) {
    throw ApiError(503, "a model is being loaded, and too many requests wait for it already");
  }
  jobs_.push_back(std::move(job));
  changed_.notify_all();
}

void ModelHost::set_keep_alive(std::optional<double> seconds) {
  const std::scoped_lock lock(mutex_);
  keep_alive_ = seconds;
  changed_.notify_all();
}

// With the lock held, and a service there.
ModelHost::Handle ModelHost::handle(Kind kind) const {
  ++n_held_;
  return Handle(service_.get(), [this, kind](const ModelService*) { release(kind); });
}

void ModelHost::release(Kind kind) const {
  const std::scoped_lock lock(mutex_);
  --n_held_;
  if (kind == Kind::use) last_used_ = Clock::now();
  changed_.notify_all();
}

ModelHost::Handle ModelHost::peek() const {
  const std::scoped_lock lock(mutex_);
  return service_ ? handle(Kind::peek) : nullptr;
}

ModelHost::Handle ModelHost::loaded() const {
  Handle model = peek();
  if (!model) throw ApiError(503, "no model is loaded now; the next request for text loads one");
  return model;
}

// With the lock held: whether the time of a model that nobody uses is over.
bool ModelHost::is_idle() const {
  if (!service_ || !keep_alive_ || n_held_ > 0) return false;
  return Clock::now() - last_used_ >= std::chrono::duration<double>(*keep_alive_);
}

void ModelHost::work() {
  std::unique_lock lock(mutex_);
  while (!ends_) {
    if (!jobs_.empty()) {
      const Job job = std::move(jobs_.front());
      jobs_.pop_front();
      is_busy_ = true;
      lock.unlock();
      carry_out(job);
      lock.lock();
      is_busy_ = false;
    } else if (is_idle()) {
      lock.unlock();
      options_.log(cat("unloaded ", name_, ", which nobody used"));
      retire();
      lock.lock();
    } else if (service_ && keep_alive_ && n_held_ == 0) {
      const std::chrono::duration<double> rest(std::min(*keep_alive_, 1e6));
      changed_.wait_until(lock, last_used_ + std::chrono::duration_cast<Clock::duration>(rest));
    } else {
      changed_.wait(lock);
    }
  }
  const std::deque<Job> rest = std::exchange(jobs_, {});
  lock.unlock();
  for (const Job& job : rest) job.fail(ending());
}

void ModelHost::carry_out(const Job& job) {
  if (job.is_unload) return retire() ? job.run(nullptr) : job.fail(ending());
  const std::string name = job.name.empty() ? name_ : job.name;
  if (!service_ || name != name_) {
    if (const auto error = switch_to(name)) return job.fail(*error);
  }
  Handle model;
  {
    const std::scoped_lock lock(mutex_);
    model = handle(Kind::use);
  }
  job.run(std::move(model));
}

// Only this thread changes service_ and name_, so it reads them without the lock.
std::optional<ApiError> ModelHost::switch_to(const std::string& name) {
  const std::string path = path_of(name);
  if (path.empty()) return unknown_model();
  const auto set_loading = [&](const std::string& now) {
    const std::scoped_lock lock(mutex_);
    loading_ = now;
  };
  const std::string old = service_ ? name_ : "";
  std::optional<ApiError> error;
  set_loading(name);
  try {
    if (options_.source.plan) options_.source.plan(path);  // a bad file is known before it costs
    if (retire()) {
      load(name);
    } else {
      error = ending();
    }
  } catch (const std::exception& fault) {
    options_.log(cat("fault: ", fault.what()));
    error = load_error(fault, name, path);
  }
  if (error && !service_ && !old.empty() && !ends_) {
    try {
      load(old);
    } catch (const std::exception& fault) {
      options_.log(cat("fault: ", fault.what()));
    }
  }
  set_loading("");
  return error;
}

void ModelHost::load(const std::string& name) {
  const std::string path = path_of(name);
  if (!options_.source.load) throw Error(Errc::bad_request, "this server loads no models");
  LoadedModel loaded = options_.source.load(path);
  EngineOptions engine = options_.engine;
  engine.session = std::move(loaded.session);
  auto service = std::make_unique<ModelService>(loaded.model, engine, name);
  options_.log(cat("loaded ", name));
  const std::scoped_lock lock(mutex_);
  service_ = std::move(service);
  name_ = name;
  keep_alive_ = options_.keep_alive;
  last_used_ = Clock::now();
  ++counts_.n_loaded;
}

// Nobody gets the model any more; it goes when the last who has it lets go. Where the server is to
// end before that, it stays: its answers are completed.
bool ModelHost::retire() {
  std::unique_ptr<ModelService> old;
  {
    std::unique_lock lock(mutex_);
    old = std::move(service_);
    if (!old) return true;
    changed_.wait(lock, [this] { return n_held_ == 0 || ends_; });
    if (n_held_ > 0) {
      service_ = std::move(old);
      return false;
    }
    ++counts_.n_unloaded;
  }
  old.reset();
  return true;
}

std::string ModelHost::path_of(const std::string& name) const {
  if (name == first_name_) return first_path_;
  if (!options_.source.list) return "";
  for (const FoundModel& model : options_.source.list()) {
    if (model.name == name) return model.path;
  }
  return "";
}

std::vector<ModelHost::Known> ModelHost::list() const {
  std::vector<Known> all = {{.name = first_name_, .path = first_path_}};
  if (options_.source.list) {
    for (const FoundModel& model : options_.source.list()) {
      if (model.name != first_name_ && model.path != first_path_)
        all.push_back({.name = model.name, .path = model.path});
    }
  }
  std::ranges::sort(all, {}, &Known::name);
  const std::scoped_lock lock(mutex_);
  for (Known& known : all) {
    if (service_ && known.name == name_) known.state = Known::State::loaded;
    if (known.name == loading_) known.state = Known::State::loading;
  }
  return all;
}

Json ModelHost::plan(const std::string& name) const {
  const std::string path = path_of(name);
  if (path.empty()) throw unknown_model();
  if (!options_.source.plan) throw ApiError(501, "this server makes no plans of other models");
  try {
    Json plan = Json::parse(options_.source.plan(path));
    if (plan.contains("model")) plan["model"].erase("path");
    return plan;
  } catch (const Error& error) {
    throw load_error(error, name, path);
  }
}

ModelHost::Counts ModelHost::counts() const {
  const std::scoped_lock lock(mutex_);
  return counts_;
}

std::string ModelHost::name() const {
  const std::scoped_lock lock(mutex_);
  return name_;
}

bool ModelHost::is_loading() const {
  const std::scoped_lock lock(mutex_);
  return !loading_.empty();
}

}  // namespace sluice::server
