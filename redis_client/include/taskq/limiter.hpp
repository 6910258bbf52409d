// What all limiters have in common. A limiter is a handle: its copies share one bucket, and keep the backend alive.
//
// On the memory backend acquire() of a bucket or a fixed window is one compare-and-swap: no lock, no allocation, no virtual call. Every
// other call, and every call on another backend, is one request to the backend (BackendError, Timeout).
// A cost that can never be admitted throws InvalidArgument; a denial is data.
// Thread-safety: all functions, any thread; assigning to a limiter needs the caller's care, as for any object.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "taskq/backend.hpp"
#include "taskq/decision.hpp"
#include "taskq/definition.hpp"

namespace taskq {

// Without end.
inline constexpr Duration kForever = Duration::max();

class Limiter {
 public:
  // With `backend` none the limiter keeps its state itself, on the default clock. Limiters of the same name on one backend share their
  // bucket; then their definitions have to be the same (InvalidArgument).
  Limiter(LimitDefinition definition, std::shared_ptr<Backend> backend);

  // Takes `cost` if it is there.
  Decision acquire(double cost = 1);

  // What acquire would answer. Nothing is spent.
  Decision preview(double cost = 1) const;

  State peek() const;

  // Takes a place in the queue of time if that is not further away than `max_wait`: allowed decisions carry the delay() after which the
  // caller may go. Buckets and gcra only (InvalidArgument).
  Decision reserve(double cost = 1, Duration max_wait = kForever);

  // Blocks until `cost` is taken, `timeout` is over or `stop` is requested; a denial took nothing. Buckets and gcra: first come, first
  // served, and a denial comes at once if the timeout cannot suffice. Windows try again after each retry_after.
  Decision wait(double cost = 1, Duration timeout = kForever, std::stop_token stop = {});

  // Debits without asking: later calls are denied until it is paid back.
  Decision charge(double cost);

  // Gives back what the decision took, as far as time has not; once. Answers how much that was.
  double refund(const Decision& decision);

  // Gives back `cost`, clamped at full. Answers how much that was.
  double refund(double cost);

  // Replaces the cost of a decision by the true one, once. Answers what was given back; negative: debited.
  double settle(const Decision& decision, double actual_cost);

  // As if nobody had ever called. A pause goes on.
  void reset();

  // Denies everything until then; resume() or an instant that is past ends it.
  void pause(TimePoint until);
  void pause(Duration how_long);
  void resume();

  double remaining() const { return peek().remaining; }
  std::optional<Duration> reset_after() const { return peek().reset_after; }

  const std::string& name() const noexcept { return definition_->name; }
  const LimitDefinition& definition() const noexcept { return *definition_; }
  const std::shared_ptr<const LimitDefinition>& shared_definition() const noexcept { return definition_; }
  const std::shared_ptr<Backend>& backend() const noexcept { return backend_; }

 private:
  Answer run(const Request& request) const;

  std::shared_ptr<const LimitDefinition> definition_;
  std::shared_ptr<Backend> backend_;
  std::shared_ptr<detail::MemoryBucket> bucket_;  // memory only
};

}  // namespace taskq
