#include "kube/line_queue.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <thread>

namespace loadline::kube {
namespace {

using namespace std::chrono_literals;

std::vector<std::string> lines_of(LineQueue& queue) {
  std::vector<std::string> out;
  for (WatchRead read = queue.read(0ms); read.kind == WatchRead::Kind::Line; read = queue.read(0ms))
    out.push_back(read.line);
  return out;
}

void write(LineQueue& queue, std::string_view bytes) {
  queue.write(bytes, [] {});
}

TEST(LineQueueTest, SplitsWhereverTheChunksEnd) {
  const std::string text = "{\"a\":\"\xC3\xA4\xE2\x82\xAC\"}\n\n{\"b\":2}\r\n{\"c\":3}\n";
  const std::vector<std::string> expected{"{\"a\":\"\xC3\xA4\xE2\x82\xAC\"}", "{\"b\":2}", "{\"c\":3}"};
  for (std::size_t first = 0; first <= text.size(); ++first) {
    for (std::size_t second = first; second <= text.size(); ++second) {
      LineQueue queue;
      queue.set_status(200, std::nullopt);
      write(queue, text.substr(0, first));
      write(queue, text.substr(first, second - first));
      write(queue, text.substr(second));
      queue.finish(std::nullopt);
      ASSERT_EQ(lines_of(queue), expected) << first << " " << second;
      ASSERT_EQ(queue.read(0ms).kind, WatchRead::Kind::End);
    }
  }
}

RC_GTEST_PROP(LineQueueProperty, LosesAndInventsNothing, (const std::vector<std::vector<unsigned char>>& chunks)) {
  LineQueue queue;
  queue.set_status(200, std::nullopt);
  std::string all;
  for (const auto& chunk : chunks) {
    const std::string bytes(chunk.begin(), chunk.end());
    all += bytes;
    write(queue, bytes);
  }
  std::vector<std::string> expected;
  std::string line;
  for (const char c : all) {
    if (c != '\n') {
      line += c;
      continue;
    }
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (!line.empty()) expected.push_back(line);
    line.clear();
  }
  queue.finish(std::nullopt);
  RC_ASSERT(lines_of(queue) == expected);
}

TEST(LineQueueTest, AHugeLineIsWholeAndATooHugeOneFails) {
  LineQueue queue;
  queue.set_status(200, std::nullopt);
  const std::string huge(8 * 1024 * 1024, 'x');
  write(queue, huge);
  write(queue, "\nnext\n");
  EXPECT_EQ(queue.read(0ms).line, huge);
  EXPECT_EQ(queue.read(0ms).line, "next");

  LineQueue small({.bytes = 100, .line_bytes = 10});
  small.set_status(200, std::nullopt);
  write(small, "12345678");
  write(small, "9012\n");
  EXPECT_EQ(small.read(0ms).kind, WatchRead::Kind::Failed);
}

TEST(LineQueueTest, AFullQueueMakesTheWriterWaitUntilHalfIsRead) {
  LineQueue queue({.bytes = 10, .line_bytes = 100});
  queue.set_status(200, std::nullopt);
  int welcome = 0;
  const auto count = [&] { ++welcome; };
  queue.write("12345\n", count);
  EXPECT_EQ(welcome, 1);
  queue.write("67890\n1\n", count);
  EXPECT_EQ(welcome, 1);
  EXPECT_EQ(queue.read(0ms).line, "12345");
  EXPECT_EQ(welcome, 1);
  EXPECT_EQ(queue.read(0ms).line, "67890");
  EXPECT_EQ(welcome, 2);
}

TEST(LineQueueTest, ClosingFreesBothSides) {
  LineQueue queue({.bytes = 1, .line_bytes = 100});
  queue.set_status(200, std::nullopt);
  bool freed = false;
  queue.write("12345\n", [&] { freed = true; });
  EXPECT_FALSE(freed);
  std::jthread closer([&] { queue.close(); });
  closer.join();
  EXPECT_TRUE(freed);
  EXPECT_EQ(queue.read(10s).kind, WatchRead::Kind::End);
  bool late = false;
  queue.write("more\n", [&] { late = true; });
  EXPECT_TRUE(late) << "a writer after the end must not hang";
}

TEST(LineQueueTest, BytesBeforeTheStatusWaitForIt) {
  LineQueue queue;
  bool welcome = false;
  queue.write("early\n", [&] { welcome = true; });
  EXPECT_FALSE(welcome);
  EXPECT_EQ(queue.read(0ms).kind, WatchRead::Kind::Timeout);
  EXPECT_FALSE(queue.read(0ms).answered);
  queue.set_status(200, std::nullopt);
  EXPECT_TRUE(welcome);
  EXPECT_EQ(queue.read(0ms).line, "early");
  EXPECT_TRUE(queue.read(0ms).answered);
}

TEST(LineQueueTest, AStreamWithoutAStatusFailsInTheEnd) {
  LineQueue queue({.status = 50ms});
  bool freed = false;
  queue.write("early\n", [&] { freed = true; });
  EXPECT_EQ(queue.read(0ms).kind, WatchRead::Kind::Timeout);
  const WatchRead read = queue.read(30s);
  ASSERT_EQ(read.kind, WatchRead::Kind::Failed);
  EXPECT_EQ(read.error.reason, ApiError::kTimeout);
  EXPECT_TRUE(freed) << "a writer that waits for the status";
  queue.set_status(200, std::nullopt);
  EXPECT_EQ(queue.read(0ms).kind, WatchRead::Kind::Failed) << "it stays so";
}

TEST(LineQueueTest, AStreamWithAStatusMayBeSilentForAsLongAsItLikes) {
  LineQueue queue({.status = 20ms});
  queue.set_status(200, std::nullopt);
  EXPECT_EQ(queue.read(50ms).kind, WatchRead::Kind::Timeout);
}

TEST(LineQueueTest, TheBodyOfARefusalIsItsError) {
  LineQueue queue;
  queue.write(R"({"kind":"Status","code":429,"mess)", [] {});
  queue.set_status(429, 3s);
  write(queue, R"(age":"slow down"})");
  queue.finish(std::nullopt);
  const WatchRead read = queue.read(0ms);
  ASSERT_EQ(read.kind, WatchRead::Kind::Failed);
  EXPECT_EQ(read.error.message, "slow down");
  EXPECT_EQ(read.error.retry_after, 3s);
}

}  // namespace
}  // namespace loadline::kube
