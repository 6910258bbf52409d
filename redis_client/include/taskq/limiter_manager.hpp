// One limit for each of many keys: users, addresses, tenants.
//
//   LimiterManager per_user(TokenBucket("per_user", {.capacity = 50, .refill_per_second = 10}), {.max_keys = 100'000});
//   if (!per_user.acquire("user_123")) ...
//
// Keys often come from outside, so bound them. Keys are created only by acquire, wait, reserve, charge and pause; looking creates none and
// keeps none alive. A key is forgotten only when it is full: it loses nothing. When `max_keys` keys are all in use, a
// new one is denied with reason too_many_keys. On another backend than memory the store forgets idle keys by itself, and max_keys,
// size(), keys(), contains(), remove(), clear() and cleanup() know of none.
// Decisions view the manager's definition: they must not outlive it where name(), quota() or cost() are asked.
// Thread-safety: all functions, any thread.
#pragma once

#include <cstddef>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "taskq/limiter.hpp"

namespace taskq {

struct ManagerOptions {
  std::size_t max_keys = 0;  // 0: no bound; of managers that share a limit on one backend, the first sets it
};

class LimiterManager {
 public:
  // Takes the definition and the backend of `prototype`; its own bucket is not touched.
  explicit LimiterManager(const Limiter& prototype, ManagerOptions options = {});

  // As those of Limiter, for one key. A key is 1..1024 bytes without NUL (InvalidArgument).
  Decision acquire(std::string_view key, double cost = 1);
  Decision preview(std::string_view key, double cost = 1) const;
  State peek(std::string_view key) const;
  Decision reserve(std::string_view key, double cost = 1, Duration max_wait = kForever);
  Decision wait(std::string_view key, double cost = 1, Duration timeout = kForever, std::stop_token stop = {});
  Decision charge(std::string_view key, double cost);
  double refund(std::string_view key, const Decision& decision);
  double refund(std::string_view key, double cost);
  double settle(std::string_view key, const Decision& decision, double actual_cost);
  void reset(std::string_view key);
  void pause(std::string_view key, TimePoint until);
  void resume(std::string_view key) { pause(key, TimePoint::min()); }
  double remaining(std::string_view key) const { return peek(key).remaining; }
  std::optional<Duration> reset_after(std::string_view key) const { return peek(key).reset_after; }

  std::size_t size() const;
  bool contains(std::string_view key) const;
  std::vector<std::string> keys() const;  // least recently used first

  // Forgets a key, whatever it owes. False if it is not known.
  bool remove(std::string_view key);
  std::size_t clear();

  // Forgets keys that are full and that nobody has tried to spend from for `max_idle`. Answers how many.
  std::size_t cleanup(Duration max_idle = std::chrono::minutes{5});

  // Forgets one key if it is full. True if it is not there now.
  bool forget(std::string_view key);

  const LimitDefinition& definition() const noexcept { return *definition_; }
  const std::shared_ptr<const LimitDefinition>& shared_definition() const noexcept { return definition_; }
  const std::shared_ptr<Backend>& backend() const noexcept { return backend_; }

 private:
  Answer run(const Request& request) const;
  Request asking(Op op, std::string_view key, double cost, bool bounded = true) const;

  std::shared_ptr<const LimitDefinition> definition_;
  std::shared_ptr<Backend> backend_;
  std::shared_ptr<detail::KeyTable> keys_;  // memory only
};

}  // namespace taskq
