#include "scripts.hpp"

#include "lua_sources.hpp"
#include "taskq/errors.hpp"

namespace taskq::redis {

#ifdef TASKQ_REDIS_GIVEN_CLOCK
const Clock* given_clock = nullptr;
#define clock clock_given
#endif

Script::Script(std::initializer_list<std::string_view> parts) {
  for (const std::string_view part : parts) source_ += part;
}

std::string Script::load(Connection& connection) const {
  const std::string_view words[] = {"SCRIPT", "LOAD", source_};
  const Reply reply = connection.ask(words);
  check(*reply);
  if (reply->type != REDIS_REPLY_STRING) throw BackendError("redis: SCRIPT LOAD answered something else than a digest");
  const std::lock_guard lock(mutex_);
  digest_.assign(reply->str, reply->len);
  return digest_;
}

std::string Script::digest(Connection& connection) const {
  {
    const std::lock_guard lock(mutex_);
    if (!digest_.empty()) return digest_;
  }
  return load(connection);
}

Reply Script::run(Connection& connection, std::span<const std::string> keys, std::span<const std::string> arguments) const {
  const std::string digest_known = digest(connection), count = std::to_string(keys.size());
  std::vector<std::string_view> words{"EVALSHA", digest_known, count};
  words.insert(words.end(), keys.begin(), keys.end());
  words.insert(words.end(), arguments.begin(), arguments.end());
#ifdef TASKQ_REDIS_GIVEN_CLOCK
  const std::string now = std::to_string(given_clock->now());
  words.push_back(now);
#endif
  Reply reply = connection.ask(words);
  if (reply->type == REDIS_REPLY_ERROR && std::string_view(reply->str, reply->len).starts_with("NOSCRIPT")) {
    load(connection);
    reply = connection.ask(words);
  }
  check(*reply);
  return reply;
}

const Script& take_script(ratelimit::Algorithm algorithm) {
  using namespace lua;
  static const Script meter_script{clock, record, meter, one_meter, answer};
  static const Script fixed_window_script{clock, record, fixed_window, one_fixed_window, answer};
  static const Script two_counter_script{clock, record, fixed_window, two_counter, one_two_counter, answer};
  static const Script log_script{clock, record, log, one_log, answer};
  switch (algorithm) {
    case ratelimit::Algorithm::meter: return meter_script;
    case ratelimit::Algorithm::fixed_window: return fixed_window_script;
    case ratelimit::Algorithm::two_counter: return two_counter_script;
    default: return log_script;
  }
}

const Script& several_script() {
  using namespace lua;
  static const Script script{clock, record, meter, fixed_window, two_counter, log, several};
  return script;
}

const Script& look_log_script() {
  static const Script script{lua::clock, lua::record, lua::log, lua::look_log};
  return script;
}

const Script& log_back_script() {
  static const Script script{lua::clock, lua::record, lua::log, lua::log_back};
  return script;
}

const Script& peek_script() {
  static const Script script{lua::clock, lua::record, lua::peek};
  return script;
}

const Script& replace_script() {
  static const Script script{lua::clock, lua::record, lua::replace};
  return script;
}

const Script& slots_script() {
  static const Script script{lua::clock, lua::record, lua::slots};
  return script;
}

}  // namespace taskq::redis
