// Requests and answers of groups as SQL sees them.
#pragma once

#include "group.hpp"

#include "pg.hpp"

namespace taskq::pg {

// Reads an array of taskq.acquire_request. Raises 22004 for NULLs, 22023 for too many or malformed ones, 42704 for unknown names.
struct GivenRequests {
  GroupRequest* list;
  int count;
};
GivenRequests requests_arg(FunctionCallInfo fcinfo, int position);

// A request whose kind is known, checked as the SQL functions check names and keys.
GroupRequest checked_request(ResourceKind kind, std::string_view name, std::string_view key, double cost);

// taskq.group_decision as a value.
Datum group_datum(FunctionCallInfo fcinfo, const GroupRequest* requests, int count, const GroupAnswer& answer);

// What became of each request, as an array of taskq.request_decision, which is `array_type`.
Datum decisions_datum(Oid array_type, const GroupRequest* requests, int count);

// "rate_limit:<name>" or "reservation:<name>".
const char* resource_text(const GroupRequest& request);

// Why the request was refused, or "ok" or "shadow".
const char* outcome_text(const GroupRequest& request);

}  // namespace taskq::pg
