#include "actor_acquire.hpp"

#include "actor_tickets.hpp"
#include "clock.hpp"
#include "count_decision.hpp"
#include "errors.hpp"
#include "group_row.hpp"
#include "payload_key.hpp"
#include "queue_caps.hpp"

#include "pg.hpp"

namespace taskq::pg {

using ratelimit::Micros;

namespace {

static_assert(max_actor_resources + 1 == max_requests);

void check_exists(const Actor& actor, const ActorResource& resource) {
  const bool is_slot = resource.kind == ResourceKind::reservation;
  if (is_slot ? find_reservation(resource.name) != nullptr : find_definition(resource.name) != nullptr) return;
  ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
                  errmsg("%s \"%s\" of actor \"%s\" does not exist", is_slot ? "reservation" : "rate limit", shown(resource.name),
                         shown(actor.name)),
                  errdetail("It was dropped after the actor had been registered."),
                  errhint("Register it again, or the actor without it, with replace => true.")));
}

void append(ActorRequests& requests, GroupRequest request, const pg_uuid_t& job, const pg_uuid_t& worker) {
  request.job = job;
  request.worker = worker;
  requests.list[requests.count++] = request;
}

GroupRequest request_of(const Actor& actor, const ActorResource& resource, const Jsonb* payload) {
  check_exists(actor, resource);
  const std::string_view key = resource.keyed ? payload_key(actor, resource, payload) : std::string_view{};
  return checked_request(resource.kind, resource.name, key, 1);
}

}  // namespace

ActorRequests requests_of(const Actor& actor, const pg_uuid_t& job, const pg_uuid_t& worker, const Jsonb* payload) {
  ActorRequests requests;
  requests.list = static_cast<GroupRequest*>(palloc(sizeof(GroupRequest) * static_cast<Size>(actor.count + 1)));
  const std::string_view cap = actor.has_queue ? cap_name(actor.queue) : std::string_view{};
  if (actor.has_queue && find_reservation(cap) != nullptr) {
    GroupRequest request = checked_request(ResourceKind::reservation, cap, {}, 1);
    request.missing = Missing::allows;  // lifted at this very moment
    append(requests, request, job, worker);
  }
  for (int i = 0; i < actor.count; ++i) append(requests, request_of(actor, actor.resources[i], payload), job, worker);
  return requests;
}

ActorAnswer acquire_for_actor(const ActorRequests& requests, bool ticket) {
  ActorAnswer answer{.group = counted(requests.list, requests.count, acquire_group(requests.list, requests.count))};
  if (answer.group.allowed) return answer;
  for (int i = 0; i < requests.count; ++i) {
    if (!requests.list[i].allowed()) answer.retry_after = ratelimit::larger(answer.retry_after, wait_of(requests.list[i]));
  }
  if (!ticket || !draw_tickets(requests.list, requests.count, answer.ticket_at)) return answer;
  answer.has_ticket = true;
  answer.retry_after = ratelimit::larger(answer.ticket_at - clock_now(), 1);
  return answer;
}

}  // namespace taskq::pg
