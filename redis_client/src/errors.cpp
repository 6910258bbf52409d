#include "taskq/errors.hpp"

#include <utility>

namespace taskq {

ReservationUnavailable::ReservationUnavailable(std::string name, std::chrono::microseconds retry_after)
    : Error("\"" + name + "\" is not available, retry after " + std::to_string(retry_after.count()) + " us"),
      name_(std::move(name)),
      retry_after_(retry_after) {}

}  // namespace taskq
