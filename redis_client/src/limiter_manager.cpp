#include "taskq/limiter_manager.hpp"

#include "taskq/detail/key_table.hpp"
#include "taskq/detail/wait.hpp"
#include "taskq/errors.hpp"

namespace taskq {

LimiterManager::LimiterManager(const Limiter& prototype, ManagerOptions options)
    : definition_(prototype.shared_definition()),
      backend_(prototype.backend()),
      keys_(backend_->direct_keys(*definition_, options.max_keys)) {}

Answer LimiterManager::run(const Request& request) const { return keys_ ? keys_->run(request) : backend_->run(request); }

// The cost is checked before a key is touched.
Request LimiterManager::asking(Op op, std::string_view key, double cost, bool bounded) const {
  check_key(key);
  const bool usual = cost == 1 && definition_->one > 0;
  return {.op = op, .limit = definition_.get(), .key = key, .cost = usual ? definition_->one : cost_units(*definition_, cost, bounded)};
}

Decision LimiterManager::acquire(std::string_view key, double cost) {
  if (keys_) {
    const std::int64_t units = cost == 1 && definition_->one > 0 ? definition_->one : cost_units(*definition_, cost);
    return {*definition_, units, [&] { return keys_->acquire(key, units); }};
  }
  const Request request = asking(Op::acquire, key, cost);
  return {*definition_, run(request), request.cost};
}

Decision LimiterManager::preview(std::string_view key, double cost) const {
  const Request request = asking(Op::preview, key, cost);
  return {*definition_, run(request), request.cost};
}

State LimiterManager::peek(std::string_view key) const {
  check_key(key);
  const std::int64_t one = definition_->one > 0 ? definition_->one : definition_->limit.most();
  return make_state(*definition_, key, run({.op = Op::peek, .limit = definition_.get(), .key = key, .cost = one}));
}

Decision LimiterManager::reserve(std::string_view key, double cost, Duration max_wait) {
  detail::check_reservable(*definition_);
  Request request = asking(Op::reserve, key, cost);
  request.max_wait = detail::checked_wait(*definition_, max_wait);
  return {*definition_, run(request), request.cost};
}

Decision LimiterManager::wait(std::string_view key, double cost, Duration timeout, std::stop_token stop) {
  const Request request = asking(Op::acquire, key, cost);
  return detail::wait(*backend_, *definition_, request.cost, detail::checked_wait(*definition_, timeout), stop, [&](Request r) {
    r.key = key;
    return run(r);
  });
}

Decision LimiterManager::charge(std::string_view key, double cost) {
  const Request request = asking(Op::charge, key, cost, false);
  return {*definition_, run(request), request.cost};
}

double LimiterManager::refund(std::string_view key, const Decision& decision) { return settle(key, decision, 0); }

double LimiterManager::refund(std::string_view key, double cost) {
  return static_cast<double>(run(asking(Op::refund, key, cost, false)).given_back) / definition_->grains_per_unit;
}

double LimiterManager::settle(std::string_view key, const Decision& decision, double actual_cost) {
  check_key(key);
  const std::int64_t actual = actual_cost == 0 ? 0 : cost_units(*definition_, actual_cost, false);
  if (!detail::took(decision)) return 0;
  Request request = detail::giving_back(*definition_, decision.answer(), decision.cost_units());
  request.op = Op::settle;
  request.key = key;
  request.cost = actual;
  return static_cast<double>(run(request).given_back) / definition_->grains_per_unit;
}

void LimiterManager::reset(std::string_view key) {
  check_key(key);
  run({.op = Op::reset, .limit = definition_.get(), .key = key});
}

void LimiterManager::pause(std::string_view key, TimePoint until) {
  check_key(key);
  run({.op = Op::pause, .limit = definition_.get(), .key = key, .until = until.time_since_epoch().count()});
}

std::size_t LimiterManager::size() const { return keys_ ? keys_->size() : 0; }
bool LimiterManager::contains(std::string_view key) const { return keys_ && keys_->contains(key); }
std::vector<std::string> LimiterManager::keys() const { return keys_ ? keys_->keys() : std::vector<std::string>{}; }
bool LimiterManager::remove(std::string_view key) { return keys_ && keys_->remove(key); }
std::size_t LimiterManager::clear() { return keys_ ? keys_->clear() : 0; }
bool LimiterManager::forget(std::string_view key) { return !keys_ || keys_->forget(key); }

std::size_t LimiterManager::cleanup(Duration max_idle) {
  return keys_ ? keys_->sweep(detail::checked_wait(*definition_, max_idle)) : 0;
}

}  // namespace taskq
