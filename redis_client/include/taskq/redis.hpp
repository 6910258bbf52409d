// Limits in Redis 6 or later: one script call per decision, by the server's clock, exact to the microsecond.
//
// What is known under a limit's name and numbers is one bucket, whichever program asks. A definition with other numbers is another bucket, which
// starts full. State goes away by itself once it says no more than "full"; a quota that never refills is kept for
// `quota_life` after its last use (RedisOptions, or ttl of the definition), and is full again after that.
// Thread-safety: all functions may be called from any number of threads. A forked child makes connections of its own.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "taskq/backend.hpp"

namespace taskq {

struct RedisOptions {
  // redis://[[user]:password@]host[:port][/database] or unix://[[user]:password@]/path[?db=database]
  std::string url = "redis://127.0.0.1:6379";
  Duration connect_timeout = std::chrono::seconds{1};
  Duration command_timeout = std::chrono::seconds{1};
  std::size_t idle_connections = 8;          // more are made when needed, and closed after use
  std::string prefix = "taskq";              // of all keys
  Duration quota_life = std::chrono::days{30};
};

class RedisBackend final : public Backend {
 public:
  // Connects at the first call. Throws InvalidArgument for a URL or option that cannot be right.
  explicit RedisBackend(RedisOptions options = {});
  ~RedisBackend() override;

  Store store() const noexcept override { return Store::redis; }

  // All throw ConnectionError if the server cannot be reached, Timeout if it did not answer in time, and BackendError for any other answer
  // than expected. After a Timeout the connection is closed, so a late answer is never taken for that of another call.
  Answer run(const Request& request) override;
  SlotAnswer run_slot(const SlotRequest& request) override;
  std::vector<Answer> run_many(std::span<const Request> requests) override;  // one round trip for every 64
  GroupAnswer acquire_all(std::span<const GroupItem> items) override;        // limits: one round trip; slots: one each before

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace taskq
