// One connection to a Redis server, and a pool of them. Includes hiredis: for the sources of the library only.
#pragma once

#include <hiredis/hiredis.h>
#include <sys/types.h>

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "taskq/clock.hpp"
#include "url.hpp"

namespace taskq::redis {

struct Free {
  void operator()(redisReply* reply) const noexcept { freeReplyObject(reply); }
  void operator()(redisContext* context) const noexcept { redisFree(context); }
};
using Reply = std::unique_ptr<redisReply, Free>;

// Not thread-safe.
class Connection {
 public:
  // Throws ConnectionError, Timeout, or BackendError if the server refuses the password or the database.
  Connection(const Address& address, Duration connect_timeout, Duration command_timeout);

  // The reply, which may be an error. Throws ConnectionError or Timeout; afterwards the connection is of no use.
  Reply ask(std::span<const std::string_view> words);

  // False if the server has closed it, or sent what nobody asked for.
  bool is_quiet() const;

 private:
  void log_in(const Address& address);
  [[noreturn]] void fail(const char* doing) const;

  std::unique_ptr<redisContext, Free> context_;
};

// Throws BackendError with the server's message if the reply is an error.
void check(const redisReply& reply);

// Thread-safe.
class Pool {
 public:
  Pool(Address address, Duration connect_timeout, Duration command_timeout, std::size_t idle);

  // Runs `use(connection)`. The connection is kept for others unless `use` throws. A connection that the server has closed while it was idle is
  // found out before anything is sent.
  template <class Use>
  auto with(Use use) {
    std::unique_ptr<Connection> connection = take();
    auto result = use(*connection);
    give_back(std::move(connection));
    return result;
  }

 private:
  std::unique_ptr<Connection> take();
  void give_back(std::unique_ptr<Connection> connection);

  const Address address_;
  const Duration connect_timeout_;
  const Duration command_timeout_;
  const std::size_t most_idle_;
  std::mutex mutex_;
  pid_t process_;  // whose connections these are
  std::vector<std::unique_ptr<Connection>> idle_;
};

}  // namespace taskq::redis
