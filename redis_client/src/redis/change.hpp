// What is done to one bucket seldom: charge, refund, settle, reset, pause. The rules are the core's, applied here: the record is read, changed, and
// written if nobody has changed it meanwhile. A sliding log has a script of its own, since its entries change with it.
#pragma once

#include <string_view>

#include "connection.hpp"
#include "taskq/backend.hpp"

namespace taskq::redis {

struct ChangeOptions {
  std::string_view prefix;
  Duration quota_life;
};

// Throws as Script::run does, and BackendError if others were faster a thousand times.
Answer change(Connection& connection, const ChangeOptions& options, const Request& request);
Answer change_log(Connection& connection, const ChangeOptions& options, const Request& request);

}  // namespace taskq::redis
