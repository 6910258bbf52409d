#include "taskq/reservation.hpp"

#include <utility>

#include "taskq/detail/wait.hpp"
#include "taskq/errors.hpp"
#include "taskq/memory_backend.hpp"

namespace taskq {

namespace {

// Slots come back before their leases end: look again after this long.
constexpr Micros kSlotNap = 20'000;

}  // namespace

ConcurrencyReservation::ConcurrencyReservation(std::string name, const ReservationOptions& options, std::shared_ptr<Backend> backend)
    : ConcurrencyReservation(define_reservation(std::move(name), options.slots, options.lease), std::move(backend)) {}

ConcurrencyReservation::ConcurrencyReservation(ReservationDefinition definition, std::shared_ptr<Backend> backend)
    : definition_(std::make_shared<const ReservationDefinition>(std::move(definition))),
      backend_(backend ? std::move(backend) : std::make_shared<MemoryBackend>()) {}

SlotAnswer ConcurrencyReservation::run(SlotOp op, std::string_view key, std::string_view job_id, std::string_view worker_id, int index,
                                       std::int64_t fence) const {
  if (!key.empty()) check_key(key);
  return backend_->run_slot({.op = op,
                             .reservation = definition_.get(),
                             .key = key,
                             .job_id = job_id,
                             .worker_id = worker_id,
                             .slot_index = index,
                             .fence = fence});
}

SlotDecision ConcurrencyReservation::try_acquire(std::string_view job_id, std::string_view worker_id, std::string_view key) {
  const SlotAnswer a = run(SlotOp::acquire, key, job_id, worker_id, -1, 0);
  return {.allowed = a.done,
          .slot = {.index = a.slot_index, .fence = a.fence, .expires_at = TimePoint{Duration{a.expires_at}}},
          .retry_after = Duration{a.retry_after}};
}

Slot ConcurrencyReservation::acquire(std::string_view job_id, std::string_view worker_id, std::string_view key) {
  const SlotDecision d = try_acquire(job_id, worker_id, key);
  if (!d.allowed) throw ReservationUnavailable(name(), d.retry_after);
  return d.slot;
}

SlotGuard ConcurrencyReservation::hold(std::string_view job_id, std::string_view worker_id, std::string_view key) {
  return {*this, acquire(job_id, worker_id, key), std::string(key)};
}

SlotDecision ConcurrencyReservation::wait(std::string_view job_id, std::string_view worker_id, Duration timeout, std::stop_token stop,
                                          std::string_view key) {
  if (timeout.count() < 0) throw InvalidArgument("reservation \"" + name() + "\": a timeout must not be negative");
  const Clock& clock = backend_->clock();
  const Micros until = ratelimit::saturating_add(clock.now(), timeout.count());
  for (;;) {
    SlotDecision d = try_acquire(job_id, worker_id, key);
    const Micros left = until - clock.now();
    if (d.allowed || left <= 0) return d;
    const Micros nap = ratelimit::smaller(ratelimit::smaller(d.retry_after.count(), kSlotNap), left);
    if (!clock.sleep(Duration{nap}, stop)) return d;
  }
}

bool ConcurrencyReservation::release(int slot_index, std::string_view worker_id, std::int64_t fence, std::string_view key) {
  return run(SlotOp::release, key, {}, worker_id, slot_index, fence).done;
}

std::optional<TimePoint> ConcurrencyReservation::renew(int slot_index, std::string_view worker_id, std::int64_t fence, std::string_view key) {
  const SlotAnswer a = run(SlotOp::renew, key, {}, worker_id, slot_index, fence);
  return a.done ? std::optional(TimePoint{Duration{a.expires_at}}) : std::nullopt;
}

ReservationState ConcurrencyReservation::peek(std::string_view key) const {
  const SlotAnswer a = run(SlotOp::peek, key, {}, {}, -1, 0);
  const int free = slots() > a.held ? slots() - a.held : 0;
  ReservationState state{.name = name(), .slots = slots(), .held = a.held, .free = free, .first_expires_at = std::nullopt};
  if (a.held > 0) state.first_expires_at = TimePoint{Duration{a.expires_at}};
  return state;
}

SlotGuard::SlotGuard(ConcurrencyReservation reservation, Slot slot, std::string key)
    : reservation_(std::move(reservation)), slot_(slot), key_(std::move(key)) {}

SlotGuard::SlotGuard(SlotGuard&& other) noexcept
    : reservation_(other.reservation_), slot_(other.slot_), key_(std::move(other.key_)), held_(std::exchange(other.held_, false)) {}

SlotGuard::~SlotGuard() {
  try {
    release();
  } catch (...) {
    // The lease ends by itself.
  }
}

bool SlotGuard::release() { return std::exchange(held_, false) && reservation_.release(slot_.index, {}, slot_.fence, key_); }

SyncResult sync_slots(std::span<const ConcurrencyReservation> reservations) {
  SyncResult sum;
  for (const ConcurrencyReservation& r : reservations) {
    const SlotAnswer a = r.backend()->run_slot({.op = SlotOp::sync, .reservation = &r.definition()});
    sum.inserted += a.inserted;
    sum.deleted += a.deleted;
    sum.skipped_held += a.skipped_held;
  }
  return sum;
}

}  // namespace taskq
