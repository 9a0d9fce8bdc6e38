// Renders a list of templates for tests/parity/template_test.mjs: reads JOBS, a JSON list of
// {"template": text, "variables": {...}, "now": local seconds or absent}, and prints the list of
// {"output": text} or {"error": text} in the same order.
//
//   render_template JOBS.json
// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <exception>
#include <fstream>
#include <iostream>

#include "base/error.h"
#include "text/jinja_template.h"

namespace {

using sluice::text::jinja::Json;

Json render(const Json& job) {
  try {
    const sluice::text::jinja::Template compiled(job.at("template").get<std::string>());
    sluice::text::jinja::Template::Variables variables;
    for (const auto& [name, value] : job.at("variables").get_ref<const Json::object_t&>()) {
      variables.emplace_back(name, &value);
    }
    sluice::text::jinja::LocalTime now;
    if (job.contains("now")) {
      now = std::chrono::local_seconds(std::chrono::seconds(job.at("now").get<int64_t>()));
    }
    return {{"output", compiled.render(variables, now)}};
  } catch (const sluice::Error& error) {
    return {{"error", error.what()}};
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    std::ifstream file(argc == 2 ? argv[1] : "");
    if (!file) throw std::runtime_error("usage: render_template JOBS.json");
    Json results = Json::array();
    for (const Json& job : Json::parse(file)) results.push_back(render(job));
    std::cout << results << "\n";
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "render_template: " << error.what() << "\n";
    return 2;
  }
}
