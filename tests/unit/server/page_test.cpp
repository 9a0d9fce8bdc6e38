// The page's files are in the program, whole, with their types; so is the policy that a browser is
// told.
// SPDX-License-Identifier: Apache-2.0
#include "server/page.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "server/page_files.h"

namespace sluice::server {
namespace {

TEST(Page, RootIsAWholeHtmlDocument) {
  const auto page = page_asset("/");
  ASSERT_TRUE(page);
  EXPECT_EQ(page->content_type, "text/html; charset=utf-8");
  EXPECT_EQ(page->bytes.substr(0, 15), "<!doctype html>");
  EXPECT_EQ(page->bytes.substr(page->bytes.size() - 8), "</html>\n");
  EXPECT_EQ(page_asset("/index.html")->bytes, page->bytes);
}

TEST(Page, NothingElseIsThere) {
  for (const char* path : {"", "index.html", "/index.html.gz", "/../page.h", "/v1/models", "//"}) {
    EXPECT_FALSE(page_asset(path)) << path;
  }
}

TEST(Page, EachFileHasATypeATagOfItsOwnAndIsSmallerCompressed) {
  std::set<std::string_view> tags;
  for (const PageFile& file : page_files()) {
    SCOPED_TRACE(std::string(file.path));
    EXPECT_FALSE(file.asset.content_type.empty());
    EXPECT_FALSE(file.asset.bytes.empty());
    EXPECT_EQ(file.asset.etag.size(), 18u);
    EXPECT_EQ(file.asset.etag.front(), '"');
    EXPECT_EQ(file.asset.etag.back(), '"');
    EXPECT_TRUE(tags.insert(file.asset.etag).second);
    if (file.asset.gzip.empty()) continue;
    EXPECT_EQ(file.asset.gzip.substr(0, 2), "\x1f\x8b");
    EXPECT_LT(file.asset.gzip.size(), file.asset.bytes.size());
  }
}

TEST(Page, PolicyAllowsNothingFromElsewhereAndNothingInline) {
  const std::string csp(page_csp());
  EXPECT_NE(csp.find("default-src 'none'"), std::string::npos);
  for (const char* hole : {"unsafe", "*", "http", "data:", "blob:"}) {
    EXPECT_EQ(csp.find(hole), std::string::npos) << hole;
  }
}

}  // namespace
}  // namespace sluice::server
