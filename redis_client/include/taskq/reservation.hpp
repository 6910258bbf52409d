// How many may run at the same time: a pool of slots, each held for a lease. A holder that dies loses its slot when the lease ends; one that
// lives longer renews it (slot_keeper.hpp). Every acquisition has a fence, a number higher than any before, so that a
// late release or renewal never touches a slot that somebody else holds by now.
// Thread-safety: all functions, any thread. A SlotGuard belongs to one thread at a time.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include "taskq/backend.hpp"
#include "taskq/clock.hpp"
#include "taskq/limiter.hpp"

namespace taskq {

struct ReservationOptions {
  int slots = 0;      // >= 1
  Duration lease{0};  // > 0
};

struct Slot {
  int index = -1;
  std::int64_t fence = 0;
  TimePoint expires_at{};
};

struct SlotDecision {
  bool allowed = false;
  Slot slot;                // if allowed
  Duration retry_after{0};  // if denied: until the first lease ends, if nobody releases
  explicit operator bool() const noexcept { return allowed; }
};

struct ReservationState {
  std::string name;
  int slots = 0;
  int held = 0;
  int free = 0;
  std::optional<TimePoint> first_expires_at;
};

struct SyncResult {
  int inserted = 0;
  int deleted = 0;
  int skipped_held = 0;
};

class SlotGuard;

class ConcurrencyReservation {
 public:
  // Without a backend the slots are kept in memory, for this handle and its copies.
  ConcurrencyReservation(std::string name, const ReservationOptions& options, std::shared_ptr<Backend> backend = nullptr);
  ConcurrencyReservation(ReservationDefinition definition, std::shared_ptr<Backend> backend);

  // Takes a slot; throws ReservationUnavailable if all are held.
  Slot acquire(std::string_view job_id, std::string_view worker_id, std::string_view key = {});
  SlotDecision try_acquire(std::string_view job_id, std::string_view worker_id, std::string_view key = {});

  // Takes a slot that is released when the guard goes; throws ReservationUnavailable.
  SlotGuard hold(std::string_view job_id, std::string_view worker_id, std::string_view key = {});

  // Blocks until a slot is taken, `timeout` is over or `stop` is requested.
  SlotDecision wait(std::string_view job_id, std::string_view worker_id, Duration timeout = kForever, std::stop_token stop = {},
                    std::string_view key = {});

  // False, and nothing changed, if the slot is not held by this worker, or not with this fence (0: any). One of both has to be given.
  bool release(int slot_index, std::string_view worker_id, std::int64_t fence = 0, std::string_view key = {});

  // Lets the lease begin anew; none if it is lost.
  std::optional<TimePoint> renew(int slot_index, std::string_view worker_id, std::int64_t fence = 0, std::string_view key = {});

  ReservationState peek(std::string_view key = {}) const;

  const std::string& name() const noexcept { return definition_->name; }
  int slots() const noexcept { return definition_->slots; }
  Duration lease() const noexcept { return Duration{definition_->lease}; }
  const ReservationDefinition& definition() const noexcept { return *definition_; }
  const std::shared_ptr<Backend>& backend() const noexcept { return backend_; }

 private:
  SlotAnswer run(SlotOp op, std::string_view key, std::string_view job_id, std::string_view worker_id, int index, std::int64_t fence) const;

  std::shared_ptr<const ReservationDefinition> definition_;
  std::shared_ptr<Backend> backend_;
};

// Releases its slot when it goes, unless it was released before. Never throws on the way out.
class SlotGuard {
 public:
  SlotGuard(ConcurrencyReservation reservation, Slot slot, std::string key);
  SlotGuard(SlotGuard&& other) noexcept;
  SlotGuard& operator=(SlotGuard&&) = delete;
  ~SlotGuard();

  const Slot& slot() const noexcept { return slot_; }

  // False if the lease had been lost.
  bool release();

 private:
  ConcurrencyReservation reservation_;
  Slot slot_;
  std::string key_;
  bool held_ = true;
};

// Brings the stores in line with how many slots the reservations have now. Slots that are held go when they are released.
SyncResult sync_slots(std::span<const ConcurrencyReservation> reservations);

}  // namespace taskq
