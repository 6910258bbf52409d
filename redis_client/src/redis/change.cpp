#include "change.hpp"

#include "codec.hpp"
#include "scripts.hpp"
#include "taskq/detail/bucket.hpp"
#include "taskq/errors.hpp"
#include "taskq_ratelimit/log.hpp"

namespace taskq::redis {

using ratelimit::Limit;
using ratelimit::kNever;

namespace {

constexpr int most_attempts = 1000;

struct Seen {
  Micros now;
  std::string record;
};

bool is_once(Op op) { return op == Op::give_back || op == Op::settle; }

// The bucket as it is stored, or a fresh one.
detail::Bucket bucket_of(const Limit& limit, const Seen& seen) {
  detail::Bucket bucket(limit, seen.now);
  const std::optional<Record> record = from_text(seen.record);
  if (!record) return bucket;
  bucket.state = record->state;
  if (record->paused_until != 0) bucket.pause(record->paused_until);
  return bucket;
}

// A full bucket is stored, too: a window goes on in its phase.
std::string record_of(const detail::Bucket& bucket) {
  return to_text({.state = bucket.state, .paused_until = bucket.paused_until() == detail::kNotPaused ? 0 : bucket.paused_until()});
}

Seen look(Connection& connection, const BucketKeys& keys) {
  const std::vector<std::string> names{keys.record};
  const Reply reply = peek_script().run(connection, names, {});
  const std::string_view text = text_of(*reply);
  if (text.size() < sizeof(double)) throw BackendError("redis: a script did not tell the time");
  return {.now = numbers_of(text.substr(0, sizeof(double)), 1)[0], .record = std::string(text.substr(sizeof(double)))};
}

enum class Written { no, yes, before };

struct Wish {
  std::string record;
  std::string life;
  std::string mark_life;  // empty: no mark
};

Written replace(Connection& connection, const BucketKeys& keys, const std::string& mark, Seen& seen, const Wish& wish) {
  const std::vector<std::string> names{keys.record, mark}, arguments{seen.record, wish.record, wish.life, wish.mark_life};
  const Reply reply = replace_script().run(connection, names, arguments);
  const std::string_view text = text_of(*reply);
  if (text.size() < 2 * sizeof(double)) throw BackendError("redis: a script answered too little");
  const std::vector<Micros> n = numbers_of(text.substr(0, 2 * sizeof(double)), 2);
  seen = {.now = n[1], .record = std::string(text.substr(2 * sizeof(double)))};
  return n[0] == 1 ? Written::yes : n[0] == 2 ? Written::before : Written::no;
}

}  // namespace

Answer change(Connection& connection, const ChangeOptions& options, const Request& request) {
  const Limit& limit = request.limit->limit;
  const BucketKeys keys = keys_of(options.prefix, *request.limit, request.key);
  const std::string life = std::to_string(life_of(*request.limit, options.quota_life));
  const std::string mark = is_once(request.op) ? mark_of(keys, request.taken, request.id) : keys.record;
  Seen seen = look(connection, keys);
  for (int attempt = 0; attempt < most_attempts; ++attempt) {
    detail::Bucket bucket = bucket_of(limit, seen);
    Answer answer = bucket.run(*request.limit, request, seen.now);
    answer.store = Store::redis;
    if (request.op == Op::peek || request.op == Op::preview) return answer;
    // A pause may last longer than the state; a debt may be larger than the capacity.
    const Micros longest = ratelimit::larger(answer.decision.reset_after == kNever ? 0 : answer.decision.reset_after,
                                             bucket.is_paused(seen.now) && bucket.paused_until() != kNever ? bucket.paused_until() - seen.now : 0);
    const bool for_ever = bucket.is_paused(seen.now) && bucket.paused_until() == kNever;
    const Micros milliseconds = for_ever ? ratelimit::kMaxProduct / 1000 : std::stoll(life) + longest / 1000;
    const Wish wish{record_of(bucket), std::to_string(milliseconds), is_once(request.op) ? life : ""};
    const Written written = replace(connection, keys, mark, seen, wish);
    if (written == Written::yes) return answer;
    if (written == Written::before) {
      Request nothing = request;
      nothing.op = Op::refund;
      nothing.cost = 0;
      answer = bucket_of(limit, seen).run(*request.limit, nothing, seen.now);
      answer.store = Store::redis;
      return answer;
    }
  }
  throw BackendError("redis: others changed the bucket faster, a thousand times");
}

namespace {

Answer look_at_log(Connection& connection, const ChangeOptions& options, const Request& request) {
  Request peek = request;
  peek.op = Op::peek;
  peek.cost = 1;
  const BucketKeys keys = keys_of(options.prefix, *request.limit, request.key);
  const std::vector<std::string> names{keys.record, keys.entries};
  const Reply reply = look_log_script().run(connection, names, take_arguments(peek, life_of(*request.limit, options.quota_life), {}));
  return take_answer(peek, text_of(*reply), {});
}

Answer pause_log(Connection& connection, const ChangeOptions& options, const Request& request) {
  const BucketKeys keys = keys_of(options.prefix, *request.limit, request.key);
  Seen seen = look(connection, keys);
  for (int attempt = 0; attempt < most_attempts; ++attempt) {
    Record record = from_text(seen.record).value_or(Record{.state = ratelimit::log::fresh(request.limit->limit, seen.now), .paused_until = 0});
    record.paused_until = request.until > seen.now ? request.until : 0;
    const Micros pause = record.paused_until == 0 ? 0 : record.paused_until == kNever ? ratelimit::kMaxProduct : record.paused_until - seen.now;
    const Wish wish{to_text(record), std::to_string(life_of(*request.limit, options.quota_life) + pause / 1000), ""};
    if (replace(connection, keys, keys.record, seen, wish) == Written::yes) return look_at_log(connection, options, request);
  }
  throw BackendError("redis: others changed the bucket faster, a thousand times");
}

}  // namespace

Answer change_log(Connection& connection, const ChangeOptions& options, const Request& request) {
  if (request.op == Op::pause) return pause_log(connection, options, request);
  const LimitDefinition& definition = *request.limit;
  const BucketKeys keys = keys_of(options.prefix, definition, request.key);
  const std::string life = std::to_string(life_of(definition, options.quota_life));
  const std::int64_t back = request.op == Op::give_back ? request.taken.cost : request.op == Op::settle ? request.taken.cost - request.cost : request.cost;
  const bool debits = request.op == Op::charge || back < 0;
  const char* mode = debits ? "debit" : request.op == Op::refund ? "newest" : request.op == Op::reset ? "reset" : "entry";
  const RequestId id = debits ? RequestId::next(request.taken.decided_at) : request.id;
  const std::string mark = is_once(request.op) ? mark_of(keys, request.taken, request.id) : keys.record;
  const std::vector<std::string> names{keys.record, keys.entries, mark};
  const std::vector<std::string> arguments{std::to_string(definition.limit.window), mode, std::to_string(back < 0 ? -back : back), id_text(id),
                                           std::to_string(request.taken.decided_at), life, is_once(request.op) ? life : ""};
  const Reply reply = log_back_script().run(connection, names, arguments);
  if (request.op == Op::reset) return look_at_log(connection, options, request);
  const std::vector<Micros> n = numbers_of(text_of(*reply), 8);
  const ratelimit::State state{.at = n[2], .start = n[3], .used = n[4], .previous = n[5], .tail = n[6], .newest = n[7]};
  Answer answer{.decision = ratelimit::log::describe(definition.limit, state, true, 0), .reason = Reason::ok, .store = Store::redis, .id = {}};
  if (request.op == Op::charge) {
    answer.id = id;
  } else {
    answer.given_back = n[0];
  }
  return answer;
}

}  // namespace taskq::redis
