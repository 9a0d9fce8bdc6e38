// What becomes of every kind of answer, and the record that a broken-off file is gone on with.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "hub/answer_head.h"
#include "hub/resume_record.h"

namespace sluice::hub::test {
namespace {

using Advice = Judgement::Advice;

AnswerHead head(int status, const std::string& range = "", const std::string& etag = "") {
  return {.status = status, .content_range = range, .etag = etag};
}

const WantedPart kPart = {{100, 200}, 1000, "aa", "tag"};

TEST(AnswerHead, IsReadLineByLine) {
  AnswerHead h;
  for (const char* line :
       {"HTTP/1.1 302 Found\r\n", "X-Linked-ETag: \"abc\"\r\n", "ETag: \"hub\"\r\n", "\r\n",
        "HTTP/2 206\r\n", "etag:  \"x\"  \r\n", "CONTENT-RANGE: bytes 0-9/10\r\n", "no colon"}) {
    h.add_line(line);
  }
  EXPECT_EQ(h.status, 206);
  EXPECT_EQ(h.linked_etag, "abc");
  EXPECT_EQ(h.etag, "x");
  EXPECT_EQ(h.content_range, "bytes 0-9/10");
  h.add_line("ETag: W/\"weak\"");
  EXPECT_EQ(h.etag, "");
  h.add_line("Link: <https://host/next?cursor=1>; rel=\"next\"");
  EXPECT_EQ(h.next_page, "https://host/next?cursor=1");
}

TEST(ContentRange, IsReadOrRefused) {
  const auto read = parse_content_range("bytes 100-199/1000");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->range, (Range{100, 200}));
  EXPECT_EQ(read->n_bytes, 1000u);
  EXPECT_EQ(parse_content_range("bytes 0-0/*")->n_bytes, 0u);
  for (const char* text : {"", "bytes", "bytes */10", "bytes 5-4/10", "bytes 1-2", "bytes 1-2/x",
                           "bytes -2/3", "bytes 0-18446744073709551615/1", "items 0-1/2"}) {
    EXPECT_FALSE(parse_content_range(text)) << text;
  }
}

TEST(Judgement, TakesThePartThatWasAskedFor) {
  EXPECT_EQ(judge(head(206, "bytes 100-199/1000", "tag"), kPart).advice, Advice::take);
  EXPECT_EQ(judge(head(206, "bytes 100-199/*"), kPart).advice, Advice::take);
  EXPECT_EQ(judge(head(200), {{0, 1000}, 1000, "", ""}).advice, Advice::take);
}

TEST(Judgement, AsksAgainForWhatMayPass) {
  for (const int status : {408, 425, 429, 500, 502, 503, 504}) {
    EXPECT_EQ(judge(head(status), kPart).advice, Advice::again) << status;
  }
  for (const char* range :
       {"bytes 0-99/1000", "bytes 100-198/1000", "bytes 100-199/999", "", "x"}) {
    EXPECT_EQ(judge(head(206, range), kPart).advice, Advice::again) << range;
  }
  EXPECT_EQ(judge(head(200), kPart).advice, Advice::again);
}

TEST(Judgement, GivesUpWhatWillNotPass) {
  for (const int status : {400, 401, 403, 404, 410, 416, 302}) {
    EXPECT_EQ(judge(head(status), kPart).advice, Advice::give_up) << status;
  }
  EXPECT_NE(judge(head(401), kPart).text.find("HF_TOKEN"), std::string::npos);
  EXPECT_EQ(judge(head(206, "bytes 100-199/1000", "other"), kPart).advice, Advice::give_up);
  AnswerHead changed = head(206, "bytes 100-199/1000", "tag");
  changed.linked_etag = "bb";
  EXPECT_EQ(judge(changed, kPart).advice, Advice::give_up);
}

TEST(Waiting, DoublesToALimitOrFollowsTheServer) {
  EXPECT_EQ(wait_seconds(1, 0), 0.25);
  EXPECT_EQ(wait_seconds(2, 0), 0.5);
  EXPECT_EQ(wait_seconds(6, 0), 8.0);
  EXPECT_EQ(wait_seconds(100, 0), 30.0);
  EXPECT_EQ(wait_seconds(1, 7), 7.0);
}

TEST(ResumeRecord, ComesBackAsItWasWritten) {
  ResumeRecord record{.n_bytes = 1000, .sha256 = "ab", .n_synced = 50, .boot = "id"};
  record.landed.add({0, 100});
  record.landed.add({200, 300});
  const auto back = ResumeRecord::parse(record.to_text());
  ASSERT_TRUE(back);
  EXPECT_EQ(back->to_text(), record.to_text());
  EXPECT_EQ(ResumeRecord::parse(ResumeRecord{.n_bytes = 5}.to_text())->boot, "");
}

TEST(ResumeRecord, ReliesOnWhatIsOnTheDisk) {
  ResumeRecord record{.n_bytes = 1000, .n_synced = 50, .boot = "then"};
  record.landed.add({0, 100});
  record.landed.add({200, 300});
  EXPECT_EQ(record.reliable("then").n_bytes(), 200u);
  EXPECT_EQ(record.reliable("now").n_bytes(), 50u);
  EXPECT_EQ(record.reliable("").n_bytes(), 50u);
  record.boot = "";
  EXPECT_EQ(record.reliable("now").n_bytes(), 200u);
}

TEST(ResumeRecord, IsNothingWhereItIsCutOrContradictsItself) {
  ResumeRecord record{.n_bytes = 1000, .sha256 = "ab"};
  record.landed.add({0, 100});
  const std::string text = record.to_text();
  for (size_t n = 0; n + 1 < text.size(); ++n) {
    EXPECT_FALSE(ResumeRecord::parse(text.substr(0, n))) << n;
  }
  for (const char* ranges : {"0-2000", "5-5", "9-3", "a-b", "7"}) {
    std::string wrong = text;
    wrong.replace(wrong.find("0-100"), 5, ranges);
    EXPECT_FALSE(ResumeRecord::parse(wrong)) << ranges;
  }
}

}  // namespace
}  // namespace sluice::hub::test
