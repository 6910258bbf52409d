#include "resource.hpp"

#include "definitions.hpp"
#include "errors.hpp"
#include "reservations.hpp"

#include "pg.hpp"

namespace taskq::pg {

namespace {

[[noreturn]] void raise_neither(std::string_view name) {
  ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("there is no rate limit and no reservation \"%s\"", shown(name)),
                  errdetail("Neither is registered under this name."),
                  errhint("Register one with a taskq.register_ function; taskq.rate_limits and taskq.reservations list those that exist.")));
}

[[noreturn]] void raise_both(std::string_view name) {
  ereport(ERROR, (errcode(ERRCODE_AMBIGUOUS_PARAMETER), errmsg("\"%s\" is a rate limit and a reservation", shown(name)),
                  errdetail("Each kind has names of its own."), errhint("Say which: kind => 'rate_limit' or kind => 'reservation'.")));
}

}  // namespace

const char* resource_kind_text(ResourceKind kind) { return kind == ResourceKind::rate_limit ? "rate_limit" : "reservation"; }

ResourceKind resource_kind(std::string_view name, std::string_view wanted, bool names_holder) {
  for (ResourceKind kind : {ResourceKind::rate_limit, ResourceKind::reservation}) {
    if (wanted == resource_kind_text(kind)) return kind;
  }
  if (!wanted.empty()) {
    raise_invalid("unknown kind", psprintf("The kind is \"%s\".", shown(wanted)), "Kinds are rate_limit and reservation.");
  }
  const bool is_limit = find_definition(name) != nullptr, is_reservation = find_reservation(name) != nullptr;
  if (!is_limit && !is_reservation) raise_neither(name);
  if (is_limit && is_reservation && !names_holder) raise_both(name);
  return is_reservation && (names_holder || !is_limit) ? ResourceKind::reservation : ResourceKind::rate_limit;
}

}  // namespace taskq::pg
