// sluice serve: the model over HTTP, for editors, agents and the page in the browser.
// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/error.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/files/text_file.h"
#include "cli/flags/flag_checks.h"
#include "cli/flags/model_options.h"
#include "cli/plan/planned_file.h"
#include "cli/terminal/progress_bar.h"
#include "cli/terminal/terminal_text.h"
#include "server/server.h"

namespace sluice::cli {
namespace {

constexpr const char* kKeyVariable = "SLUICE_API_KEY";

struct ServeOptions {
  ModelOptions model;
  server::ServerOptions server;
  std::vector<std::string> keys;
  std::string key_file;
  int max_body_mib = 16;
  double keep_alive = 0.0;
  bool quiet = false;
};

// Those of the flag, of the file, and of the environment, where nobody else sees them.
std::vector<std::string> keys_of(const ServeOptions& options) {
  std::vector<std::string> keys = options.keys;
  if (!options.key_file.empty()) {
    const auto more = server::api_keys_of(read_text_file(options.key_file));
    if (more.empty()) {
      throw Error(Errc::bad_request,
                  cat(options.key_file, " holds no key; expected one in a line"));
    }
    keys.insert(keys.end(), more.begin(), more.end());
  }
  if (const char* key = std::getenv(kKeyVariable); key && *key) keys.emplace_back(key);
  return keys;
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

// Without stdio, whose lock would be held while nobody reads, and wanted at the program's end.
void write_log(const std::string& line) {
  const std::string text = one_line(line) + "\n";
  for (size_t n_done = 0; n_done < text.size();) {
    const ssize_t n = write(STDERR_FILENO, text.data() + n_done, text.size() - n_done);
    if (n < 0 && errno != EINTR) return;  // there is nobody to tell
    if (n > 0) n_done += static_cast<size_t>(n);
  }
}

// Models that `sluice list` shows, loaded as the flags say. `options` outlive the server.
server::ModelSource source_of(const ModelOptions& options, int n_sequences) {
  const auto session_of = [&options](const std::string& path) {
    SessionOptions session = options.session;
    if (!session.device.profile_path.empty()) {
      session.device.profile_path = options.device.profile_path(path);
    }
    return session;
  };
  server::ModelSource source;
  source.list = [] { return list_models(); };
  source.load = [&options, session_of](const std::string& path) {
    const LoadOptions how{.n_threads = options.n_threads, .weights = options.weights};
    return server::LoadedModel{Model::load(path, how), session_of(path)};
  };
  source.plan = [&options, session_of, n_sequences](const std::string& path) {
    return plan_text(path, options, session_of(path), n_sequences);
  };
  return source;
}

void serve(const ServeOptions& options) {
  server::ServerOptions settings = options.server;
  settings.api_keys = keys_of(options);
  settings.engine.session = options.model.session;
  settings.max_body_bytes = static_cast<size_t>(options.max_body_mib) << 20;
  settings.log = write_log;
  settings.log_requests = !options.quiet;
  settings.models = source_of(options.model, settings.engine.n_sequences);
  if (options.keep_alive > 0.0) settings.keep_alive = options.keep_alive;
  std::optional<Model> model = options.model.load();
  options.model.warn_of_context(*model);
  std::optional<ProgressBar> bar("loading the device");
  if (bar->visible()) settings.engine.session.progress = bar->updater();
  server::Server server(*model, settings);
  model.reset();  // the server's, which may unload it
  bar.reset();
  for (const std::string& warning : server.warnings()) print_warning(warning);
  if (settings.api_keys.empty() && !is_loopback(settings.host)) {
    print_warning(
        "other machines can reach this server, and it asks for no key; see --api-key-file");
  }
  const std::string host =
      settings.host.find(':') == std::string::npos ? settings.host : "[" + settings.host + "]";
  std::printf("listening at http://%s:%d\n", host.c_str(), server.port());
  std::fflush(stdout);
  server.run();
}

}  // namespace

void add_serve(CLI::App& app) {
  CLI::App* command = app.add_subcommand("serve", "answer over HTTP, as OpenAI's servers do");
  auto options = flags_for<ServeOptions>(*command, serve);
  server::ServerOptions& server = options->server;
  server.port = 8080;
  options->model.name = kDefaultModel;
  options->model.add_to(*command);
  command->add_option("--host", server.host,
                      "address to listen at (127.0.0.1: this machine alone)");
  command->add_option("--port", server.port, "port to listen at; 0: any that is free (8080)")
      ->transform(whole_number(0, 65535));
  command
      ->add_option("--api-key", options->keys,
                   "key that clients must show; may be given again. Others on this machine can see "
                   "it: better $SLUICE_API_KEY or --api-key-file")
      ->allow_extra_args(false);
  command->add_option("--api-key-file", options->key_file, "file with such keys, one in a line");
  command
      ->add_option("--parallel", server.engine.n_sequences,
                   "answers that are computed at the same time, also -np (8)")
      ->transform(whole_number(1, 256));
  command
      ->add_option("--queue", server.engine.n_queued,
                   "requests that may wait besides; more are refused with status 429 (64)")
      ->transform(at_least(0));
  command
      ->add_option("--cors", server.origins,
                   "origin of web pages that may call, such as http://localhost:3000, or * for "
                   "all; may be given again (none but its own)")
      ->allow_extra_args(false);
  command->add_option("--max-body", options->max_body_mib, "MiB of a request at most (16)")
      ->transform(whole_number(1, 1024));
  command
      ->add_option("--timeout", server.receive_seconds,
                   "seconds for a request to arrive, and for a client to read on (30)")
      ->transform(number_between(0.1, 3600.0));
  command
      ->add_option("--drain", server.drain_seconds,
                   "seconds for running answers to end after SIGTERM (30)")
      ->transform(number_between(0.0, 3600.0));
  command->add_flag("--swap", server.swap,
                    "load the model that a request names, one of those that sluice list shows, in "
                    "the place of the one before; else the name is ignored");
  command
      ->add_option("--keep-alive", options->keep_alive,
                   "seconds after which an unused model is unloaded, until the next request (0: "
                   "never)")
      ->transform(number_between(0.0, 1e6));
  command->add_option("--prefixes", server.prefix_folder,
                      "folder for beginnings of prompts that clients save and restore by name; it "
                      "must exist (without one, nothing is saved)");
  command->add_flag("--quiet", options->quiet, "no line for each request");
}

}  // namespace sluice::cli
