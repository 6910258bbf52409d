#include "group.hpp"

#include "errors.hpp"
#include "settings.hpp"
#include "subtransaction.hpp"

#include "pg.hpp"

namespace taskq::pg {

using ratelimit::kNever;
using ratelimit::Micros;

namespace {

struct Group {
  GroupRequest* requests;
  GroupRequest** order;  // as rule (2) has it
  int count;
  int writes = 0;        // how many rows an allowed group changes
  TimestampTz started = 0;
  int undone = 0;        // how many times because of rule (5)
};

bool is_slot(const GroupRequest& r) { return r.kind == ResourceKind::reservation; }

void resolve_slot(GroupRequest& r) {
  if (r.cost != 1) {
    raise_invalid("cost of a slot must be 1", psprintf("The cost is %s.", number_text(r.cost)),
                  "A request takes one slot; for several slots make several requests.");
  }
  if (look_up_reservation(r.name, r.missing, r.reservation)) check_key(r.reservation, r.key);
}

void resolve_limit(GroupRequest& r) {
  r.call = Call{};
  r.call.name = r.name;
  r.call.key = r.key;
  r.call.amount = r.cost;
  r.call.rule = CostRule::takes;
  resolve(r.call);
}

int32 number_of(const GroupRequest& r) { return is_slot(r) ? r.reservation.reservation_id : r.call.definition.limit_id; }

bool same_target(const GroupRequest& a, const GroupRequest& b) {
  return a.kind == b.kind && number_of(a) == number_of(b) && a.key == b.key;
}

int in_order(const void* left, const void* right) {
  const GroupRequest &a = **static_cast<GroupRequest* const*>(left), &b = **static_cast<GroupRequest* const*>(right);
  if (a.kind != b.kind) return is_slot(a) ? -1 : 1;
  if (number_of(a) != number_of(b)) return number_of(a) < number_of(b) ? -1 : 1;
  const int by_key = a.key.compare(b.key);
  return by_key != 0 ? by_key : (&a < &b ? -1 : 1);
}

void check_together(GroupRequest& r) {
  if (!is_slot(r)) {
    r.call.cost = checked_units(r.call.definition.limit, r.call.definition.name, r.call.amount, r.call.rule);
  } else if (r.sharing > r.reservation.slots) {
    raise_invalid("a group asks for more slots than there are",
                  psprintf("It asks for %d slots of \"%s\", which has %d.", r.sharing, r.reservation.name, r.reservation.slots),
                  "Such a call could never succeed: ask for less, or register more slots.");
  }
}

// Rule (4).
void share(Group& g) {
  for (int i = 0; i < g.count; ++i) {
    GroupRequest& r = *g.order[i];
    const bool shared = i > 0 && same_target(*g.order[i - 1], r);
    r.first = shared ? g.order[i - 1]->first : &r;
    g.writes += is_slot(r) || !shared;
    if (!shared) continue;
    ++r.first->sharing;
    r.first->call.amount += r.cost;
  }
  for (int i = 0; i < g.count; ++i) {
    if (g.order[i]->first == g.order[i] && g.order[i]->sharing > 1) check_together(*g.order[i]);
  }
}

Group resolved(GroupRequest* requests, int count) {
  Group g{.requests = requests, .order = nullptr, .count = count, .started = GetCurrentTimestamp()};
  g.order = static_cast<GroupRequest**>(palloc(sizeof(GroupRequest*) * static_cast<Size>(count + 1)));
  for (int i = 0; i < count; ++i) {
    is_slot(requests[i]) ? resolve_slot(requests[i]) : resolve_limit(requests[i]);
    g.order[i] = &requests[i];
  }
  pg_qsort(g.order, static_cast<size_t>(count), sizeof(GroupRequest*), in_order);
  share(g);
  return g;
}

void look_at(GroupRequest& r) {
  if (is_slot(r)) {
    r.slot = look_for_slots(r.name, r.key, r.sharing, r.missing);
  } else {
    r.answer = preview_bucket(r.call);
  }
}

// Rule (1). True if all would be allowed.
bool look(Group& g) {
  bool allowed = true;
  for (int i = 0; i < g.count; ++i) {
    GroupRequest& r = *g.order[i];
    r.has_lease = false;
    if (r.first != &r) continue;
    CHECK_FOR_INTERRUPTS();
    look_at(r);
    allowed = allowed && r.allowed();
  }
  return allowed;
}

// A bucket that would have admitted its part: as it is, nothing taken.
void describe_untouched(GroupRequest& r) {
  const Answer now = peek_bucket(r.call);
  r.answer.decision.remaining = now.decision.remaining;
  r.answer.decision.reset_after = now.decision.reset_after;
  r.answer.has_request_id = false;
}

void spread(Group& g) {
  for (int i = 0; i < g.count; ++i) {
    GroupRequest& r = *g.order[i];
    if (r.first == &r) continue;
    r.answer = r.first->answer;
    if (!r.has_lease) r.slot = r.first->slot;
  }
}

GroupAnswer sum_up(Group& g) {
  GroupAnswer answer;
  for (int i = 0; i < g.count; ++i) {
    const GroupRequest& r = g.requests[i];
    if (r.allowed()) continue;
    answer.allowed = false;
    if (answer.refused_by == nullptr) answer.refused_by = &r;
    answer.retry_after = ratelimit::larger(answer.retry_after, r.retry_after());
  }
  return answer;
}

GroupAnswer refused(Group& g) {
  for (int i = 0; i < g.count; ++i) {
    GroupRequest& r = *g.order[i];
    if (r.first == &r && !is_slot(r) && r.allowed()) describe_untouched(r);
  }
  spread(g);
  return sum_up(g);
}

// Writes nothing, but for leases that the clock, set back, would leave without an end.
GroupAnswer refused_by_a_look(Group& g) {
  for (int i = 0; i < g.count; ++i) {
    const GroupRequest& r = *g.order[i];
    if (r.first == &r && is_slot(r) && r.slot.ahead) anchor_slots(r.reservation, r.key);
  }
  return refused(g);
}

Micros time_left(const Group& g) {
  if (lock_timeout == 0) return kNever;
  return ratelimit::larger(Micros{0}, Micros{lock_timeout} * 1000 - (GetCurrentTimestamp() - g.started));
}

bool take(const Group& g, GroupRequest& r) {
  if (!is_slot(r)) {
    r.call.patience = ratelimit::smaller(time_left(g), g.undone < most_undone && g.writes > 1 ? undo_after : kNever);
    if (r.first == &r) r.answer = acquire_bucket(r.call);
  } else {
    r.slot = take_slot(r.name, r.key, r.job, r.worker, kNever, r.missing);
    r.has_lease = r.slot.reason == SlotReason::ok;
  }
  return r.first->allowed() && r.allowed();
}

// Rule (2). The request that refused, or nullptr.
GroupRequest* take_all(Group& g) {
  for (int i = 0; i < g.count; ++i) {
    GroupRequest& r = *g.order[i];
    if (!is_slot(r) && r.first != &r) continue;
    CHECK_FOR_INTERRUPTS();
    if (!take(g, r)) return &r;
  }
  return nullptr;
}

GroupRequest* take_all_or_nothing(Group& g) {
  if (g.writes <= 1) return take_all(g);  // then a refusal has written nothing
  GroupRequest* refusing = nullptr;
  in_subtransaction([&] {
    refusing = take_all(g);
    return refusing == nullptr;
  });
  return refusing;
}

// Whether another look would see what made it refuse.
bool is_seen_by_a_look(const GroupRequest& r) {
  if (is_slot(r)) return r.slot.reason == SlotReason::full;
  return r.answer.reason == Reason::limited || r.answer.reason == Reason::paused;
}

// Rule (5).
bool is_to_be_undone(Group& g, const GroupRequest& r) {
  return !is_slot(r) && r.answer.reason == Reason::lock_timeout && g.writes > 1 && time_left(g) > 0 && g.undone++ < most_undone;
}

// What refused while taking cannot be seen by looking: its answer stands beside those of a look at the others.
GroupAnswer refused_while_taking(Group& g, const GroupRequest& refusing) {
  const Answer answer = refusing.answer;
  const SlotAnswer slot = refusing.slot;
  look(g);
  refusing.first->answer = answer;
  refusing.first->slot = slot;
  return refused(g);
}

}  // namespace

GroupAnswer acquire_group(GroupRequest* requests, int count) {
  Group g = resolved(requests, count);
  for (;;) {
    CHECK_FOR_INTERRUPTS();
    if (g.writes > 1 && !look(g)) return refused_by_a_look(g);
    const GroupRequest* refusing = take_all_or_nothing(g);
    if (refusing == nullptr) break;
    if (is_to_be_undone(g, *refusing)) {
      pg_usleep(pause_after_undoing);
      continue;
    }
    if (g.writes <= 1 || !is_seen_by_a_look(*refusing)) return refused_while_taking(g, *refusing);
  }
  spread(g);
  return sum_up(g);
}

GroupAnswer look_at_group(GroupRequest* requests, int count) {
  Group g = resolved(requests, count);
  look(g);
  return refused(g);
}

}  // namespace taskq::pg
