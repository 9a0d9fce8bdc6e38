// The page of `sluice simulate --report`: it stands alone, and no document can break out of it.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/simulate/report/page.h"

namespace sluice::test {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kOpening = "<script type=\"application/json\" id=\"document\">";

// What a browser takes for the document: all up to the next end of a script.
std::string document_of(const std::string& page) {
  const size_t begin = page.find(kOpening) + kOpening.size();
  return page.substr(begin, page.find("</script", begin) - begin);
}

size_t count(std::string_view text, std::string_view part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(ReportPage, KeepsTheDocumentWhateverItsStringsHold) {
  for (const char* name :
       {"Qwen3-30B-A3B", "</script><script>alert(1)</script>", "</SCRIPT >", "<!-- <script>", "]]>",
        "@DOCUMENT@ @SCRIPT@", "\u2028 and \u2029, not \u2027", "\"quoted\\\"",
        "\xe2\x80 cut short", "naïve 模型 🦙"}) {
    const std::string document =
        Json{{"model", name}}.dump(-1, ' ', false, Json::error_handler_t::replace);
    const std::string page = cli::report::page(document);
    EXPECT_EQ(Json::parse(document_of(page)), Json::parse(document)) << name;
    EXPECT_EQ(count(page, "<script"), count(cli::report::page("{}"), "<script")) << name;
    EXPECT_EQ(count(page, "\u2028") + count(page, "\u2029"), 0u) << name;
  }
}

TEST(ReportPage, IsWholeAndHasNoMarkLeft) {
  const std::string page = cli::report::page("{}");
  EXPECT_TRUE(page.starts_with("<!doctype html>"));
  EXPECT_TRUE(page.ends_with("</html>\n"));
  EXPECT_NE(page.find("function start()"), std::string::npos);
  EXPECT_NE(page.find("color-scheme"), std::string::npos);
  for (const char* mark : {"@STYLE@", "@SCRIPT@", "@DOCUMENT@"})
    EXPECT_EQ(page.find(mark), std::string::npos) << mark;
}

TEST(ReportPage, RefersToNothingOutsideItself) {
  const std::string page = cli::report::page("{}");
  for (const char* reference :
       {"http:", "https:", "file:", "src=", "<link", "@import", "import(", "fetch(",
        "XMLHttpRequest", "WebSocket", "//cdn", "url(http", "url(\"", "url(/"}) {
    EXPECT_EQ(page.find(reference), std::string::npos) << reference;
  }
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
}

}  // namespace
}  // namespace sluice::test
