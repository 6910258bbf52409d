// References to limits and reservations whose key is taken from a job's payload: one budget per tenant, per session, ...
//
//   KeyedRateLimitRef<ApiRequest> per_tenant("api-per-tenant", [](const ApiRequest& r) { return r.tenant_id; },
//                                            {.capacity = 10, .refill_per_second = 1});
// The key function gets a validated payload and must answer 1..255 characters of A-Z a-z 0-9 _ - : . (InvalidArgument); what it throws
// comes through. Two references never share a bucket unless base name and key are both the same.
// Thread-safety: plain values; key functions are called from whatever thread acquires.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "taskq/backend.hpp"
#include "taskq/definition.hpp"
#include "taskq/payload.hpp"
#include "taskq/reservation.hpp"

namespace taskq {

using KeyFunction = std::function<std::string(const Payload&)>;

namespace detail {

void check_derived_key(std::string_view key);

template <class P, class F>
KeyFunction key_function(F key_fn) {
  return [key_fn = std::move(key_fn)](const Payload& payload) -> std::string { return key_fn(payload.as<P>()); };
}

}  // namespace detail

// The reference without its payload's type: what a registry keeps.
struct AnyKeyedRateLimitRef {
  std::shared_ptr<const LimitDefinition> definition;
  KeyFunction key;
  std::shared_ptr<Backend> backend;  // none: the registry's
};

struct AnyKeyedReservationRef {
  std::shared_ptr<const ReservationDefinition> definition;
  KeyFunction key;
  std::shared_ptr<Backend> backend;
};

template <class P>
struct KeyedRateLimitRef : AnyKeyedRateLimitRef {
  // Throws InvalidArgument for what TokenBucket refuses.
  template <class F>
    requires std::is_invocable_r_v<std::string, F, const P&>
  KeyedRateLimitRef(std::string base_name, F key_fn, const BucketOptions& options, std::shared_ptr<Backend> on = nullptr)
      : AnyKeyedRateLimitRef{std::make_shared<const LimitDefinition>(define_bucket(std::move(base_name), Kind::token_bucket, options)),
                             detail::key_function<P>(std::move(key_fn)), std::move(on)} {}
};

template <class P>
struct KeyedReservationRef : AnyKeyedReservationRef {
  // Throws InvalidArgument for what ConcurrencyReservation refuses.
  template <class F>
    requires std::is_invocable_r_v<std::string, F, const P&>
  KeyedReservationRef(std::string base_name, F key_fn, const ReservationOptions& options, std::shared_ptr<Backend> on = nullptr)
      : AnyKeyedReservationRef{
            std::make_shared<const ReservationDefinition>(define_reservation(std::move(base_name), options.slots, options.lease)),
            detail::key_function<P>(std::move(key_fn)), std::move(on)} {}
};

}  // namespace taskq
