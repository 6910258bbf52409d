// Draws the pictures of docs/algorithms.md: draw <directory> writes one SVG per name of an algorithm.
//
// The decisions and the states are the library's own; nothing here knows how a limit works.
#include <cstdio>
#include <fstream>
#include <string>

#include "chart.hpp"
#include "simulation.hpp"
#include "taskq_ratelimit/definition.hpp"

namespace {

namespace rl = taskq::ratelimit;
using pictures::kLimit;
using pictures::kWindow;
using rl::Kind;

struct Picture {
  const char* file;
  rl::Definition definition;
  pictures::Words words;
};

const Picture kPictures[] = {
    {"token_bucket", rl::make_bucket(Kind::token_bucket, kLimit, kLimit, kWindow),
     {"Token bucket: capacity 10, refilled by 1 per second",
      "A pause fills the bucket. Then 10 calls pass at once, and after them 1 per second.", "tokens left", "capacity", ""}},
    {"leaky_bucket", rl::make_bucket(Kind::leaky_bucket, kLimit, kLimit, kWindow),
     {"Leaky bucket: capacity 10, leaks 1 per second",
      "Every call pours 1 in, 1 per second leaks out. A call that would overflow is denied.", "water level", "capacity", ""}},
    {"sliding_window_log", rl::make_sliding_window(Kind::sliding_window_log, kLimit, kWindow),
     {"Sliding window, style log: 10 per 10 seconds",
      "Never more than 10 in any 10 seconds. After a burst nothing passes until it is 10 s old.", "calls that count", "limit", ""}},
    {"sliding_window_gcra", rl::make_sliding_window(Kind::sliding_window_gcra, kLimit, kWindow),
     {"Sliding window, style gcra: 10 per 10 seconds",
      "Every call moves the theoretical arrival time by 1 s. It may be up to 10 s ahead of now.", "arrival time ahead of now",
      "period", " s"}},
    {"sliding_window_counter", rl::make_sliding_window(Kind::sliding_window_counter, kLimit, kWindow),
     {"Sliding window, style counter: 10 per 10 seconds",
      "The last window's count (dark) fades out while this window's count (light) grows.", "weighted count", "limit", "", true}},
    {"fixed_window", rl::make_fixed_window(kLimit, kWindow),
     {"Fixed window: 10 per 10 seconds",
      "The count starts again at 0 in every window. Two full bursts can meet where windows meet.", "calls in this window", "limit",
      "", true}},
};

bool write(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) std::fprintf(stderr, "cannot write %s\n", path.c_str());
  return static_cast<bool>(file);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: draw <directory>\n");
    return 2;
  }
  for (const Picture& picture : kPictures) {
    const pictures::Trace trace = pictures::simulate(picture.definition.limit);
    const std::string svg = pictures::Chart(picture.words, trace).draw();
    if (!write(std::string(argv[1]) + "/" + picture.file + ".svg", svg)) return 1;
  }
  return 0;
}
