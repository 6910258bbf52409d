#include "taskq/limiter.hpp"

#include <utility>

#include "taskq/detail/memory_bucket.hpp"
#include "taskq/detail/wait.hpp"
#include "taskq/errors.hpp"
#include "taskq/memory_backend.hpp"

namespace taskq {

namespace detail {

Micros checked_wait(const LimitDefinition& limit, Duration wait) {
  if (wait.count() >= 0) return wait.count();
  throw InvalidArgument("limit \"" + limit.name + "\": a time to wait must not be negative (" + std::to_string(wait.count()) + " us)");
}

void check_reservable(const LimitDefinition& limit) {
  if (limit.limit.algorithm() == ratelimit::Algorithm::meter) return;
  throw InvalidArgument("limit \"" + limit.name + "\": only buckets and sliding windows of style gcra can be reserved");
}

}  // namespace detail

Limiter::Limiter(LimitDefinition definition, std::shared_ptr<Backend> backend)
    : definition_(std::make_shared<const LimitDefinition>(std::move(definition))),
      backend_(backend ? std::move(backend) : std::make_shared<MemoryBackend>()),
      bucket_(backend_->direct(*definition_)) {}

Answer Limiter::run(const Request& request) const { return bucket_ ? bucket_->run(request) : backend_->run(request); }

Decision Limiter::acquire(double cost) {
  const std::int64_t units = cost == 1 && definition_->one > 0 ? definition_->one : cost_units(*definition_, cost);
  if (bucket_) return {*definition_, units, [&] { return bucket_->acquire(units); }};
  return {*definition_, backend_->run({.op = Op::acquire, .limit = definition_.get(), .cost = units}), units};
}

Decision Limiter::preview(double cost) const {
  const std::int64_t units = cost_units(*definition_, cost);
  return {*definition_, run({.op = Op::preview, .limit = definition_.get(), .cost = units}), units};
}

// For a cost of 1, or of all there can be, if that is less.
State Limiter::peek() const {
  const std::int64_t one = definition_->one > 0 ? definition_->one : definition_->limit.most();
  return make_state(*definition_, {}, run({.op = Op::peek, .limit = definition_.get(), .cost = one}));
}

Decision Limiter::reserve(double cost, Duration max_wait) {
  detail::check_reservable(*definition_);
  const std::int64_t units = cost_units(*definition_, cost);
  const Request request{
      .op = Op::reserve, .limit = definition_.get(), .cost = units, .max_wait = detail::checked_wait(*definition_, max_wait)};
  return {*definition_, run(request), units};
}

Decision Limiter::wait(double cost, Duration timeout, std::stop_token stop) {
  const std::int64_t units = cost_units(*definition_, cost);
  return detail::wait(*backend_, *definition_, units, detail::checked_wait(*definition_, timeout), stop,
                      [this](const Request& r) { return run(r); });
}

Decision Limiter::charge(double cost) {
  const std::int64_t units = cost_units(*definition_, cost, false);
  return {*definition_, run({.op = Op::charge, .limit = definition_.get(), .cost = units}), units};
}

double Limiter::refund(const Decision& decision) { return settle(decision, 0); }

double Limiter::refund(double cost) {
  const std::int64_t units = cost_units(*definition_, cost, false);
  const Answer answer = run({.op = Op::refund, .limit = definition_.get(), .cost = units});
  return static_cast<double>(answer.given_back) / definition_->grains_per_unit;
}

double Limiter::settle(const Decision& decision, double actual_cost) {
  const std::int64_t actual = actual_cost == 0 ? 0 : cost_units(*definition_, actual_cost, false);
  if (!detail::took(decision)) return 0;
  Request request = detail::giving_back(*definition_, decision.answer(), decision.cost_units());
  request.op = Op::settle;
  request.cost = actual;
  return static_cast<double>(run(request).given_back) / definition_->grains_per_unit;
}

void Limiter::reset() { run({.op = Op::reset, .limit = definition_.get()}); }

void Limiter::pause(TimePoint until) {
  run({.op = Op::pause, .limit = definition_.get(), .until = until.time_since_epoch().count()});
}

void Limiter::pause(Duration how_long) {
  const Micros length = detail::checked_wait(*definition_, how_long);
  pause(TimePoint{Duration{ratelimit::saturating_add(backend_->clock().now(), length)}});
}

void Limiter::resume() { pause(TimePoint::min()); }

}  // namespace taskq
