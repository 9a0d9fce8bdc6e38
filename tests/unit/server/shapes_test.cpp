// Shapes of errors, heads and chunks of HTTP, routes, keys and origins.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "server/api_error.h"
#include "server/api_keys.h"
#include "server/http/wire.h"
#include "server/origin.h"
#include "server/router.h"

namespace sluice::server {
namespace {

TEST(ErrorShapes, EachApiHasItsOwn) {
  const ApiError error(400, "wrong", "n", "bad_n");
  EXPECT_EQ(
      dump(error_json(Api::openai, error)),
      R"({"error":{"message":"wrong","type":"invalid_request_error","param":"n","code":"bad_n"}})");
  EXPECT_EQ(dump(error_json(Api::anthropic, ApiError(404, "none"))),
            R"({"type":"error","error":{"type":"not_found_error","message":"none"}})");
  EXPECT_EQ(error_json(Api::anthropic, error)["error"]["details"], Json({{"error_code", "bad_n"}}));
  EXPECT_EQ(dump(error_json(Api::ollama, error)), R"({"error":"wrong"})");
  EXPECT_EQ(api_of("/v1/messages/count_tokens"), Api::anthropic);
  EXPECT_EQ(api_of("/api/chat"), Api::ollama);
  EXPECT_EQ(api_of("/api/sluice/state"), Api::openai);
}

TEST(ErrorShapes, TheServersOwnFaultsAreNotShown) {
  const ApiError error = to_api_error(Error(Errc::bad_file, "/home/me/secret.gguf is broken"));
  EXPECT_EQ(error.status(), 500);
  EXPECT_EQ(std::string(error.what()).find("secret"), std::string::npos);
}

TEST(Wire, HeadsAndChunks) {
  const std::string head = head_text({.status = 404, .headers = {{"X-A", "b\r\nc"}}},
                                     {.keep_alive = false, .n_bytes = 3});
  EXPECT_EQ(head,
            "HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nX-A: b  c\r\n"
            "Content-Length: 3\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(chunk_text("0123456789abcdef"), "10\r\n0123456789abcdef\r\n");
  EXPECT_EQ(chunk_text(""), "");
  EXPECT_EQ(split_target("/a/b?c=d?e"), (std::pair<std::string, std::string>("/a/b", "c=d?e")));
}

TEST(Router, FindsByMethodAndPath) {
  Router router;
  router.get("/a", {});
  router.post("/a", {});
  router.get("/b/*", {});
  EXPECT_EQ(router.find("POST", "/a").method, "POST");
  EXPECT_EQ(router.find("GET", "/b/x/y").path, "/b/*");
  const auto status = [&](const char* method, const char* path) {
    try {
      router.find(method, path);
    } catch (const ApiError& error) {
      return error.status();
    }
    return 200;
  };
  EXPECT_EQ(status("GET", "/b/"), 404);
  EXPECT_EQ(status("GET", "/a/"), 404);
  EXPECT_EQ(status("DELETE", "/a"), 405);
  router.get("/*", {});
  router.post("/c", {});
  EXPECT_EQ(status("GET", "/c"), 405);  // the very path comes first
  EXPECT_EQ(status("POST", "/d"), 404);
  EXPECT_EQ(router.find("GET", "/d").path, "/*");
}

TEST(ApiKeys, OnlyWholeKeysPass) {
  const ApiKeys keys({"secret", "", "other"});
  EXPECT_TRUE(keys.knows("secret"));
  EXPECT_TRUE(keys.knows("other"));
  for (const char* wrong : {"", "secre", "secrets", "secretsecret", "Secret", "others"}) {
    EXPECT_FALSE(keys.knows(wrong)) << wrong;
  }
  HttpRequest request;
  EXPECT_THROW(keys.check(request), ApiError);
  request.headers["authorization"] = "Bearer secret";
  EXPECT_NO_THROW(keys.check(request));
  request.headers = {{"x-api-key", "other"}};
  EXPECT_NO_THROW(keys.check(request));
  EXPECT_NO_THROW(ApiKeys({}).check({}));
}

TEST(ApiKeys, FileHasOneInALine) {
  EXPECT_EQ(keys_of("# mine\n one \r\n\ntwo"), (std::vector<std::string>{"one", "two"}));
}

TEST(Origins, PagesFromElsewhereAreRefused) {
  HttpRequest request;
  request.headers = {{"host", "127.0.0.1:8080"}, {"origin", "http://evil.example"}};
  EXPECT_THROW(OriginRule({}).check(request), ApiError);
  EXPECT_TRUE(OriginRule({}).headers(request).empty());
  EXPECT_NO_THROW(OriginRule({"*"}).check(request));
  EXPECT_EQ(OriginRule({"http://evil.example"}).headers(request).at(0).second,
            "http://evil.example");
  request.headers["origin"] = "http://127.0.0.1:8080";
  EXPECT_NO_THROW(OriginRule({}).check(request));
}

}  // namespace
}  // namespace sluice::server
