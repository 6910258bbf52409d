// At most max_requests in each window; all of it comes back at once when a window ends. Up to twice as much may pass around a boundary.
// Thread-safety: see limiter.hpp.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "taskq/limiter.hpp"

namespace taskq {

class FixedWindow : public Limiter {
 public:
  // Windows start where the limiter was made, or at the anchor. Throws InvalidArgument unless max_requests >= 1 and window > 0.
  FixedWindow(std::string name, const WindowOptions& options, std::shared_ptr<Backend> backend = nullptr)
      : Limiter(define_window(std::move(name), Kind::fixed_window, options), std::move(backend)) {}

  std::int64_t max_requests() const noexcept { return definition().limit.capacity; }
  Duration window() const noexcept { return Duration{definition().limit.window}; }
};

}  // namespace taskq
