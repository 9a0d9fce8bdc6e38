// How a server is spoken to. Without libcurl's header, for those that only pass it on.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

namespace sluice::hub {

struct Connection {
  std::string token = {};       // sent to the host of the address alone; empty: none
  double stall_seconds = 30.0;  // a transfer that brings less than 1 KiB/s for so long has failed
  // Asked several times a second; once it has said true it says so always.
  std::function<bool()> should_stop = {};

  bool stops() const { return should_stop && should_stop(); }
};

}  // namespace sluice::hub
