// Renders templates for tests/parity/template_test.mjs. JOBS is a JSON file: {"now": local seconds,
// "variables": [{...}, ...], "templates": [{"text": ..., "inputs": [places in variables]}, ...]}.
// Prints for each template one line, the list of {"output": text} or {"error": text} by input.
//
//   render_template JOBS
// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <exception>
#include <fstream>
#include <functional>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>

#include "base/error.h"
#include "text/chat_template.h"

namespace {

using namespace sluice::text;

// What `compute` returns, or the error it throws.
Json answer(const std::function<std::string()>& compute) {
  try {
    return {{"output", compute()}};
  } catch (const sluice::Error& error) {
    return {{"error", error.what()}};
  }
}

void render_all(const Json& jobs) {
  ChatInput input;
  input.now = std::chrono::local_seconds(std::chrono::seconds(jobs.at("now").get<int64_t>()));
  for (const Json& job : jobs.at("templates")) {
    const auto text = job.at("text").get<std::string>();
    std::optional<ChatTemplate> compiled;  // by the first input
    Json answers = Json::array();
    for (const size_t place : job.at("inputs")) {
      input.variables = jobs.at("variables").at(place);
      answers.push_back(answer([&] {
        if (!compiled) compiled.emplace(text);
        return compiled->render(input);
      }));
    }
    std::cout << answers << "\n";
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    std::ifstream file(argc == 2 ? argv[1] : "");
    if (!file) throw std::runtime_error("usage: render_template JOBS");
    render_all(Json::parse(file));
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "render_template: " << error.what() << "\n";
    return 2;
  }
}
