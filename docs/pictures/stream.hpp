// The calls that all pictures share, so that they can be compared: a quiet start, a burst, steady traffic just above the
// rate, a pause, two bursts around the start of a window, steady traffic at the rate. Fixed instants: no clock, no chance.
//
// REQUIRES of every instant: a whole number of kStep; the simulation steps by it.
#pragma once

#include <vector>

#include "taskq_ratelimit/micros.hpp"

namespace pictures {

using taskq::ratelimit::Micros;

inline constexpr Micros kSecond = taskq::ratelimit::kMicrosPerSecond;
inline constexpr Micros kStep = 10'000;
inline constexpr Micros kEnd = 50 * kSecond;

// What every limit in the pictures is: ten per ten seconds.
inline constexpr int kLimit = 10;
inline constexpr Micros kWindow = 10 * kSecond;

// A part of the stream and the words over it.
struct Phase {
  const char* name;
  Micros first;
  Micros gap;
  int calls;
  Micros label_at;
};

inline constexpr Phase kPhases[] = {
    {"quiet", 2 * kSecond, 3 * kSecond, 3, 5 * kSecond},
    {"burst of 15", 12 * kSecond, 2 * kStep, 15, 12 * kSecond},
    {"1.1 per second", 14 * kSecond, 90 * kStep, 15, 20'300'000},
    {"pause", 0, 0, 0, 33 * kSecond},
    {"12 + 12", 39'600'000, 2 * kStep, 12, 40 * kSecond},
    {"", 40'200'000, 2 * kStep, 12, 0},
    {"1 per second", 41 * kSecond, kSecond, 9, 46 * kSecond},
};

inline std::vector<Micros> arrivals() {
  std::vector<Micros> at;
  for (const Phase& phase : kPhases) {
    for (int i = 0; i < phase.calls; ++i) at.push_back(phase.first + i * phase.gap);
  }
  return at;
}

}  // namespace pictures
