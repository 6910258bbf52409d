#include "taskq/redis.hpp"

#include <algorithm>
#include <set>

#include "change.hpp"
#include "codec.hpp"
#include "scripts.hpp"
#include "taskq/detail/wait.hpp"
#include "taskq/errors.hpp"

namespace taskq {

using namespace redis;

namespace {

constexpr std::size_t batch = 64;  // decisions in one script call: no call keeps the server for long

RedisOptions checked(RedisOptions options) {
  if (options.connect_timeout.count() <= 0 || options.command_timeout.count() <= 0) throw InvalidArgument("redis: a time-out must be above 0");
  if (options.quota_life.count() <= 0) throw InvalidArgument("redis: quota_life must be above 0");
  if (options.prefix.empty() || options.prefix.find_first_of("{}:%") != std::string::npos) {
    throw InvalidArgument("redis: the prefix must not be empty, nor contain one of {}:%");
  }
  return options;
}

bool takes(const Request& request) { return request.op == Op::acquire || request.op == Op::reserve; }

RequestId new_id(const Request& request) {
  if (request.limit->limit.algorithm() != ratelimit::Algorithm::log) return {};
  return RequestId::next(std::chrono::duration_cast<Duration>(std::chrono::system_clock::now().time_since_epoch()).count());
}

const char* name_of(SlotOp op) {
  switch (op) {
    case SlotOp::acquire: return "acquire";
    case SlotOp::release: return "release";
    case SlotOp::renew: return "renew";
    case SlotOp::peek: return "peek";
    default: return "sync";
  }
}

}  // namespace

struct RedisBackend::Parts {
  explicit Parts(RedisOptions given)
      : options(checked(std::move(given))),
        pool(parse_url(options.url), options.connect_timeout, options.command_timeout, options.idle_connections) {}

  Answer take(const Request& request) {
    const BucketKeys keys = keys_of(options.prefix, *request.limit, request.key);
    const bool is_log = request.limit->limit.algorithm() == ratelimit::Algorithm::log;
    std::vector<std::string> names{keys.record};
    if (is_log) names.push_back(keys.entries);
    const RequestId id = new_id(request);
    const Script& script = is_log && !takes(request) ? look_log_script() : take_script(request.limit->limit.algorithm());
    const std::vector<std::string> arguments = take_arguments(request, life_of(*request.limit, options.quota_life), id);
    const Reply reply = pool.with([&](Connection& c) { return script.run(c, names, arguments); });
    return take_answer(request, text_of(*reply), id);
  }

  std::vector<Answer> several(std::span<const Request* const> requests, const char* mode) {
    std::vector<std::string> names, arguments{mode};
    std::vector<RequestId> ids;
    for (const Request* request : requests) {
      const BucketKeys keys = keys_of(options.prefix, *request->limit, request->key);
      names.insert(names.end(), {keys.record, keys.entries});
      ids.push_back(new_id(*request));
      append_for_several(arguments, *request, life_of(*request->limit, options.quota_life), ids.back());
    }
    const Reply reply = pool.with([&](Connection& c) { return several_script().run(c, names, arguments); });
    constexpr std::size_t bytes = 10 * sizeof(double);
    const std::string_view all = text_of(*reply);
    if (all.size() != bytes * requests.size()) throw BackendError("redis: a script answered for another number of buckets");
    std::vector<Answer> answers;
    for (std::size_t i = 0; i < requests.size(); ++i) answers.push_back(take_answer(*requests[i], all.substr(i * bytes, bytes), ids[i]));
    return answers;
  }

  RedisOptions options;
  Pool pool;
};

RedisBackend::RedisBackend(RedisOptions options) : parts_(std::make_unique<Parts>(std::move(options))) {}
RedisBackend::~RedisBackend() = default;

Answer RedisBackend::run(const Request& request) {
  const bool is_log = request.limit->limit.algorithm() == ratelimit::Algorithm::log;
  const bool looks = request.op == Op::peek || request.op == Op::preview;
  if (takes(request) || (is_log && looks)) return parts_->take(request);
  const ChangeOptions options{parts_->options.prefix, parts_->options.quota_life};
  return parts_->pool.with([&](Connection& c) { return is_log ? change_log(c, options, request) : change(c, options, request); });
}

std::vector<Answer> RedisBackend::run_many(std::span<const Request> requests) {
  std::vector<Answer> answers;
  std::vector<const Request*> together;
  const auto flush = [&] {
    if (together.empty()) return;
    std::ranges::move(parts_->several(together, "each"), std::back_inserter(answers));
    together.clear();
  };
  for (const Request& request : requests) {
    if (!takes(request)) {
      flush();
      answers.push_back(run(request));
      continue;
    }
    together.push_back(&request);
    if (together.size() == batch) flush();
  }
  flush();
  return answers;
}

SlotAnswer RedisBackend::run_slot(const SlotRequest& request) {
  const ReservationDefinition& r = *request.reservation;
  const std::string rest = ":{" + parts_->options.prefix + ':' + escaped(r.name) + "}:" + std::string(request.key);
  const std::vector<std::string> keys{"l" + rest, "h" + rest, "f" + rest};
  const std::vector<std::string> arguments{name_of(request.op), std::to_string(r.slots), std::to_string(r.lease), std::string(request.worker_id),
                                           std::to_string(request.slot_index), std::to_string(request.fence),
                                           std::to_string(r.lease / 1000 + 3'600'000)};
  const Reply reply = parts_->pool.with([&](Connection& c) { return slots_script().run(c, keys, arguments); });
  const std::vector<Micros> n = numbers_of(text_of(*reply), 8);
  return {.done = n[0] == 1, .slot_index = static_cast<int>(n[1]), .fence = n[2], .expires_at = n[3], .retry_after = n[4],
          .held = static_cast<int>(n[5]), .inserted = 0, .deleted = static_cast<int>(n[6]), .skipped_held = static_cast<int>(n[7])};
}

// Limits alone, each bucket once: one call of a script. Else one after the other, as every backend can.
GroupAnswer RedisBackend::acquire_all(std::span<const GroupItem> items) {
  std::vector<const Request*> limits;
  std::set<std::string> buckets;
  for (const GroupItem& item : items) {
    if (item.limit == nullptr || !buckets.insert(keys_of(parts_->options.prefix, *item.limit->limit, item.limit->key).record).second) {
      return Backend::acquire_all(items);
    }
    limits.push_back(item.limit);
  }
  if (limits.empty() || limits.size() > batch) return Backend::acquire_all(items);
  GroupAnswer group{.allowed = true, .refused_by = -1, .retry_after = 0, .limits = parts_->several(limits, "all"), .slots = {}};
  for (std::size_t i = 0; i < group.limits.size(); ++i) {
    const ratelimit::Decision& decision = group.limits[i].decision;
    if (decision.allowed) continue;
    if (group.allowed) group.refused_by = static_cast<int>(i);
    group.allowed = false;
    group.retry_after = ratelimit::larger(group.retry_after, decision.retry_after);
  }
  return group;
}

}  // namespace taskq
