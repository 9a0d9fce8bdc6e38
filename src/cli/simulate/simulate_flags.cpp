// See simulate_flags.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/simulate/simulate_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/units.h"
#include "policy/plan/hardware.h"

namespace sluice::cli {
namespace {

std::vector<std::string> items(const std::string& list) { return CLI::detail::split(list, ','); }

// The rates of a list, or the one there is without.
std::vector<double> rates_of(const std::string& list, const char* flag, double otherwise) {
  if (list.empty()) return {otherwise};
  std::vector<double> rates;
  for (const std::string& item : items(list)) rates.push_back(policy::parse_gbps(item, flag));
  return rates;
}

}  // namespace

std::vector<Contender> parse_contenders(const std::string& list) {
  const std::span<const Contender> all = all_contenders();
  if (list.empty()) return {all.begin(), all.end()};
  std::vector<Contender> chosen;
  for (const std::string& item : items(list)) {
    const std::string name = CLI::detail::trim_copy(item);
    const auto found = std::ranges::find(all, name, &Contender::name);
    if (found == all.end()) {
      std::string known;
      for (const Contender& c : all) known += cat(known.empty() ? "" : ", ", c.name);
      throw Error(Errc::bad_request,
                  cat("no policy is called '", name.substr(0, 40), "'; expected some of ", known));
    }
    chosen.push_back(*found);
  }
  return chosen;
}

std::vector<double> parse_budgets(const std::string& list) {
  std::vector<double> budgets;
  for (const std::string& item : items(list)) {
    std::string text = CLI::detail::trim_copy(item);
    if (text.ends_with('%')) text = CLI::detail::trim_copy(text.substr(0, text.size() - 1));
    double value = -1.0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool is_number = error == std::errc() && end == text.data() + text.size();
    if (!is_number || !(value >= 0.0 && value <= 100.0)) {
      throw Error(Errc::bad_request, cat("--budget has '", item.substr(0, 40),
                                         "'; expected per cent of all experts, 0 to 100"));
    }
    budgets.push_back(value);
  }
  return budgets;
}

void MachineFlags::add_to(CLI::App& command) {
  command.add_option("--hw", description, "the machine: rtx4070ti-12g+64g-ddr5, as in plan");
  command.add_option("--link", link, "host to GPU: 25GB/s, or a list to sweep (25)");
  command.add_option("--cpu", cpu, "expert kernels of the CPU, or a list (60)");
  command.add_option("--gpu", gpu, "expert kernels of the GPU, or a list (500)");
  command.add_option("--handshake", handshake, "in a layer with a miss: 18us (35)");
}

std::vector<policy::CostModel> MachineFlags::all() const {
  policy::CostModel base;
  if (!description.empty()) {
    policy::Hardware typical;
    typical.ram_free = kGiB;  // experts are in RAM whatever it is: no part of the simulation
    const policy::Hardware hardware = policy::parse_hardware(description, typical);
    if (!hardware.has_gpu()) {
      throw Error(Errc::bad_request, cat("--hw ", description.substr(0, 60),
                                         " has no GPU, so nothing to cache in; expected e.g. "
                                         "rtx4070ti-12g+64g-ddr5"));
    }
    base = {hardware};
  }
  if (!handshake.empty()) {
    base.handshake_us = policy::parse_microseconds(handshake, "--handshake");
  }
  std::vector<policy::CostModel> machines;
  for (const double link_gbps : rates_of(link, "--link", base.link_gbps)) {
    for (const double cpu_gbps : rates_of(cpu, "--cpu", base.cpu_gbps)) {
      for (const double gpu_gbps : rates_of(gpu, "--gpu", base.gpu_gbps)) {
        machines.push_back(base);
        machines.back().link_gbps = link_gbps;
        machines.back().cpu_gbps = cpu_gbps;
        machines.back().gpu_gbps = gpu_gbps;
      }
    }
  }
  return machines;
}

}  // namespace sluice::cli
