// See curl_library.h.
// SPDX-License-Identifier: Apache-2.0
#include "hub/curl_library.h"

#include <dlfcn.h>

#include "base/error.h"

namespace sluice::hub {
namespace {

constexpr const char* kFile = "libcurl.so.4";

[[noreturn]] void fail(const std::string& why) {
  throw Error(Errc::device, cat("fetching needs libcurl, which cannot be used here (", why,
                                "); install it: apt install libcurl4"));
}

template <typename Function>
void find(void* library, Function& function, const char* name) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  if (!function) fail(cat(kFile, " has no ", name));
}

CurlLibrary load() {
  void* const library = ::dlopen(kFile, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) {
    const char* const why = ::dlerror();
    fail(why ? why : kFile);
  }
  CurlLibrary c = {};
  find(library, c.global_init, "curl_global_init");
  find(library, c.easy_init, "curl_easy_init");
  find(library, c.easy_cleanup, "curl_easy_cleanup");
  find(library, c.easy_reset, "curl_easy_reset");
  find(library, c.easy_setopt, "curl_easy_setopt");
  find(library, c.easy_perform, "curl_easy_perform");
  find(library, c.easy_getinfo, "curl_easy_getinfo");
  find(library, c.easy_strerror, "curl_easy_strerror");
  find(library, c.slist_append, "curl_slist_append");
  find(library, c.slist_free_all, "curl_slist_free_all");
  find(library, c.multi_init, "curl_multi_init");
  find(library, c.multi_cleanup, "curl_multi_cleanup");
  find(library, c.multi_add_handle, "curl_multi_add_handle");
  find(library, c.multi_remove_handle, "curl_multi_remove_handle");
  find(library, c.multi_perform, "curl_multi_perform");
  find(library, c.multi_poll, "curl_multi_poll");
  find(library, c.multi_info_read, "curl_multi_info_read");
  if (c.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) fail("it does not start");
  return c;
}

}  // namespace

const CurlLibrary& curl() {
  static const CurlLibrary library = load();  // once in a process, as libcurl asks for
  return library;
}

}  // namespace sluice::hub
