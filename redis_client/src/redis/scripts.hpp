// The scripts, put together from redis_client/lua, and how they are called. Thread-safe.
#pragma once

#include <initializer_list>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "connection.hpp"
#include "taskq_ratelimit/limit.hpp"

namespace taskq::redis {

#ifdef TASKQ_REDIS_GIVEN_CLOCK
// Builds of the tests only: the scripts are given this clock's time instead of looking at the server's.
extern const Clock* given_clock;
#endif

class Script {
 public:
  explicit Script(std::initializer_list<std::string_view> parts);

  // EVALSHA; loads the script where the server does not have it (any more). Throws as Connection::ask and check do.
  Reply run(Connection& connection, std::span<const std::string> keys, std::span<const std::string> arguments) const;

 private:
  std::string digest(Connection& connection) const;
  std::string load(Connection& connection) const;

  std::string source_;
  mutable std::mutex mutex_;
  mutable std::string digest_;  // as the server tells it; the same on all servers
};

const Script& take_script(ratelimit::Algorithm algorithm);  // one decision
const Script& several_script();
const Script& look_log_script();
const Script& log_back_script();
const Script& peek_script();
const Script& replace_script();
const Script& slots_script();

}  // namespace taskq::redis
