#include "group_explain.hpp"

#include "decision_row.hpp"
#include "errors.hpp"
#include "group_row.hpp"
#include "relations.hpp"

#include "pg.hpp"

namespace taskq::pg {

using ratelimit::kNever;
using ratelimit::Micros;

namespace {

constexpr int explanation_columns = 8;

Datum text_datum(std::string_view text) {
  return PointerGetDatum(cstring_to_text_with_len(text.data(), static_cast<int>(text.size())));
}

const char* wait_text(Micros wait) {
  if (wait == kNever) return "waiting does not help";
  return psprintf("possible in %s s if nobody else calls", number_text(static_cast<double>(wait) / 1e6));
}

const char* together_text(const GroupRequest& r) {
  return r.first->sharing == 1 ? "" : psprintf(" by the %d requests for it together", r.first->sharing);
}

const char* explain_limit(const GroupRequest& r) {
  const ratelimit::Limit& limit = r.call.definition.limit;
  const char* balance = psprintf("%s of %s left, %s asked%s", number_text(ratelimit::to_amount(limit, r.answer.decision.remaining)),
                                 number_text(ratelimit::to_amount(limit, limit.capacity * limit.d)), number_text(r.first->call.amount),
                                 together_text(r));
  switch (r.answer.reason) {
    case Reason::ok: return balance;
    case Reason::shadow: return psprintf("%s; would be refused, but the limit is in shadow", balance);
    case Reason::paused: return psprintf("paused: %s; %s", balance, wait_text(r.answer.decision.retry_after));
    default: return psprintf("%s: %s", balance, wait_text(r.answer.decision.retry_after));
  }
}

const char* explain_slot(const GroupRequest& r) {
  if (r.slot.allowed) return psprintf("a slot of %d is free", r.reservation.slots);
  const char* asked = r.first->sharing == 1 ? "" : psprintf(" for the %d that are asked", r.first->sharing);
  return psprintf("not enough of %d slots are free%s: leases end in %s s unless renewed", r.reservation.slots, asked,
                  number_text(static_cast<double>(r.slot.retry_after) / 1e6));
}

}  // namespace

void put_explanation(ReturnSetInfo* result, int position, const GroupRequest& r) {
  check_columns(result->setDesc, explanation_columns);
  const bool is_limit = r.kind == ResourceKind::rate_limit, has_wait = r.retry_after() != kNever;
  Datum values[explanation_columns] = {Int32GetDatum(position),
                                       CStringGetTextDatum(resource_kind_text(r.kind)),
                                       text_datum(r.name),
                                       text_datum(r.key),
                                       BoolGetDatum(r.allowed()),
                                       CStringGetTextDatum(outcome_text(r)),
                                       has_wait ? IntervalPGetDatum(interval_of(r.retry_after())) : Datum{0},
                                       CStringGetTextDatum(is_limit ? explain_limit(r) : explain_slot(r))};
  bool nulls[explanation_columns] = {false, false, false, false, false, false, !has_wait, false};
  HeapTuple row = heap_form_tuple(result->setDesc, values, nulls);
  tuplestore_puttuple(result->setResult, row);
  heap_freetuple(row);
}

}  // namespace taskq::pg
