// At most max_requests in any window, in three styles:
//
//   log      exact; remembers one entry per call, so memory grows with max_requests
//   gcra     one number; spaces calls evenly, up to 2*max_requests - 1 may pass in one window
//   counter  two counters; an approximation, up to 2*max_requests - 1 may pass in one window
// Thread-safety: see limiter.hpp.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "taskq/limiter.hpp"

namespace taskq {

class SlidingWindow : public Limiter {
 public:
  // Throws InvalidArgument unless max_requests >= 1 and window > 0.
  SlidingWindow(std::string name, const WindowOptions& options, SlidingStyle style = SlidingStyle::log,
                std::shared_ptr<Backend> backend = nullptr)
      : Limiter(define_window(std::move(name), kind_of(style), options), std::move(backend)) {}

  std::int64_t max_requests() const noexcept { return definition().limit.capacity; }
  Duration window() const noexcept { return Duration{definition().limit.window}; }
  SlidingStyle style() const noexcept { return style_of(definition().limit.kind); }

 private:
  static constexpr Kind kind_of(SlidingStyle style) noexcept {
    return style == SlidingStyle::log    ? Kind::sliding_window_log
           : style == SlidingStyle::gcra ? Kind::sliding_window_gcra
                                         : Kind::sliding_window_counter;
  }
  static constexpr SlidingStyle style_of(Kind kind) noexcept {
    return kind == Kind::sliding_window_log    ? SlidingStyle::log
           : kind == Kind::sliding_window_gcra ? SlidingStyle::gcra
                                               : SlidingStyle::counter;
  }
};

}  // namespace taskq
