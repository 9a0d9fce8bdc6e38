// libcurl, loaded when something is first fetched: all that the program does with files at hand
// needs neither it nor what it brings along. Functions by their names without "curl_".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <curl/curl.h>

#include <memory>
#include <string>

namespace sluice::hub {

struct CurlLibrary {
  CURLcode (*global_init)(long);
  CURL* (*easy_init)();
  void (*easy_cleanup)(CURL*);
  void (*easy_reset)(CURL*);
  CURLcode (*easy_setopt)(CURL*, CURLoption, ...);
  CURLcode (*easy_perform)(CURL*);
  CURLcode (*easy_getinfo)(CURL*, CURLINFO, ...);
  const char* (*easy_strerror)(CURLcode);
  curl_slist* (*slist_append)(curl_slist*, const char*);
  void (*slist_free_all)(curl_slist*);
  CURLM* (*multi_init)();
  CURLMcode (*multi_cleanup)(CURLM*);
  CURLMcode (*multi_add_handle)(CURLM*, CURL*);
  CURLMcode (*multi_remove_handle)(CURLM*, CURL*);
  CURLMcode (*multi_perform)(CURLM*, int*);
  CURLMcode (*multi_poll)(CURLM*, curl_waitfd*, unsigned, int, int*);
  CURLMsg* (*multi_info_read)(CURLM*, int*);
};

// Throws Errc::device where this machine has no libcurl.
const CurlLibrary& curl();

struct FreeEasy {
  void operator()(CURL* handle) const { curl().easy_cleanup(handle); }
};
struct FreeMulti {
  void operator()(CURLM* handle) const { curl().multi_cleanup(handle); }
};
struct FreeList {
  void operator()(curl_slist* list) const { curl().slist_free_all(list); }
};
using EasyHandle = std::unique_ptr<CURL, FreeEasy>;
using MultiHandle = std::unique_ptr<CURLM, FreeMulti>;
using HeaderList = std::unique_ptr<curl_slist, FreeList>;

}  // namespace sluice::hub
