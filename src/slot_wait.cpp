// A waiter looks again and again, 25 to 35 ms apart: so nobody has to tell it, a release costs nothing, and of two slots
// that come free at once two waiters get one each. While it sleeps it holds no lock, no snapshot and no transaction id.
#include "slot_wait.hpp"

#include "row_wait.hpp"

#include "pg.hpp"

namespace taskq::pg {

using ratelimit::Micros;

namespace {

constexpr Micros shortest_nap = 25'000, longest_nap = 50'000, jitter = 10'000;

// One that looked for long, at very many slots, sleeps as long, so that it is not always looking.
Micros nap_after(const SlotAnswer& answer, Micros looked, Micros left) {
  const auto spread = static_cast<Micros>(pg_prng_uint64_range(&pg_global_prng_state, 0, jitter));
  const Micros nap = ratelimit::smaller(ratelimit::larger(shortest_nap + spread, looked), longest_nap);
  return ratelimit::smaller(ratelimit::smaller(nap, answer.retry_after), left);
}

}  // namespace

SlotAnswer wait_for_slot(const SlotWish& wish, const Deadline& deadline) {
  MemoryContext each = AllocSetContextCreateInternal(CurrentMemoryContext, "taskq.wait attempt", ALLOCSET_SMALL_SIZES);
  MemoryContext before = MemoryContextSwitchTo(each);
  for (;;) {
    const TimestampTz started = GetCurrentTimestamp();
    EnsurePortalSnapshotExists();
    const SlotAnswer answer = take_slot(wish.name, wish.key, wish.job, wish.worker, deadline.left());
    InterruptHoldoffCount = InterruptHoldoffCount + 1;
    SPI_commit();
    const Micros left = deadline.left();
    if (answer.allowed || left == 0) {
      MemoryContextSwitchTo(before);
      return answer;
    }
    InterruptHoldoffCount = InterruptHoldoffCount - 1;
    sleep_until(GetCurrentTimestamp() + nap_after(answer, GetCurrentTimestamp() - started, left));
    CHECK_FOR_INTERRUPTS();
    MemoryContextReset(each);
  }
}

void end_of_wait(const SlotWish& wish, const SlotAnswer& answer) {
  InterruptHoldoffCount = InterruptHoldoffCount - 1;
  if (!answer.allowed || !is_interrupted()) return;
  obey_after([&] {
    EnsurePortalSnapshotExists();
    free_slot(wish.name, wish.key, answer.slot_index, {.worker = nullptr, .has_fence = true, .fence = answer.fence}, naps_until);
    SPI_commit();
  });
}

}  // namespace taskq::pg
