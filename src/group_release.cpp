#include "group_release.hpp"

#include "refund.hpp"

#include "pg.hpp"

namespace taskq::pg {

namespace {

// As renew_slots goes through the leases of a worker, which it may do at the same time.
int by_slot(const void* left, const void* right) {
  const auto &a = *static_cast<const HeldSlot*>(left), &b = *static_cast<const HeldSlot*>(right);
  const int by_name = a.name.compare(b.name), by_key = a.key.compare(b.key);
  return by_name != 0 ? by_name : by_key != 0 ? by_key : a.index - b.index;
}

int32 limit_number(const GivenDecision& decision) {
  const Definition* definition = find_definition(decision.name);
  return definition == nullptr ? 0 : definition->limit_id;
}

struct Refund {
  int32 limit_id;
  const GivenDecision* decision;
};

int by_bucket(const void* left, const void* right) {
  const auto &a = *static_cast<const Refund*>(left), &b = *static_cast<const Refund*>(right);
  if (a.limit_id != b.limit_id) return a.limit_id < b.limit_id ? -1 : 1;
  return a.decision->key.compare(b.decision->key);
}

bool end_lease(const HeldSlot& slot) {
  return free_slot(slot.name, slot.key, slot.index, {.has_fence = true, .fence = slot.fence}, ratelimit::kNever, Missing::allows);
}

int32 refund_all(const Handle& handle) {
  auto* refunds = static_cast<Refund*>(palloc(sizeof(Refund) * static_cast<Size>(handle.decision_count + 1)));
  for (int i = 0; i < handle.decision_count; ++i) refunds[i] = {limit_number(handle.decisions[i]), &handle.decisions[i]};
  pg_qsort(refunds, static_cast<size_t>(handle.decision_count), sizeof(Refund), by_bucket);
  int32 refunded = 0;
  for (int i = 0; i < handle.decision_count; ++i) {
    CHECK_FOR_INTERRUPTS();
    if (refunds[i].limit_id != 0 && settle_once(*refunds[i].decision, 0) > 0) ++refunded;
  }
  return refunded;
}

}  // namespace

Released release_group(const Handle& handle, bool refund) {
  Released released;
  pg_qsort(handle.slots, static_cast<size_t>(handle.slot_count), sizeof(HeldSlot), by_slot);
  for (int i = 0; i < handle.slot_count; ++i) {
    CHECK_FOR_INTERRUPTS();
    ++(end_lease(handle.slots[i]) ? released.slots : released.lost);
  }
  if (refund) released.refunded = refund_all(handle);
  return released;
}

}  // namespace taskq::pg
