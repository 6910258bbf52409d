// The Lua scripts against the core, on a real server: the same sequences of random calls must give the same states and answers, to the
// last integer. The time is given to the scripts, so it goes back, too.
#include <hiredis/hiredis.h>

#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "../../../test/unit/memory_entries.hpp"
#include "../../../test/unit/random.hpp"
#include "taskq_ratelimit/decide.hpp"
#include "taskq_ratelimit/definition.hpp"
#include "taskq_ratelimit/log.hpp"

namespace {

using namespace taskq::ratelimit;

struct Server {
  redisContext* context;
  Server() : context(redisConnect("127.0.0.1", std::atoi(std::getenv("TASKQ_TEST_REDIS_PORT")))) { REQUIRE((context != nullptr && context->err == 0)); }
  ~Server() { redisFree(context); }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::string ask(const std::vector<std::string>& words) {
    std::vector<const char*> text;
    std::vector<std::size_t> sizes;
    for (const std::string& word : words) text.push_back(word.data()), sizes.push_back(word.size());
    auto* reply = static_cast<redisReply*>(redisCommandArgv(context, static_cast<int>(words.size()), text.data(), sizes.data()));
    REQUIRE(reply != nullptr);
    INFO(std::string(reply->str != nullptr ? reply->str : ""));
    REQUIRE(reply->type != REDIS_REPLY_ERROR);
    std::string answer(reply->str != nullptr ? std::string(reply->str, reply->len) : std::string());
    freeReplyObject(reply);
    return answer;
  }
};

std::string source(const std::vector<std::string>& parts) {
  std::ostringstream all;
  for (const std::string& part : parts) {
    std::ifstream file(std::string(TASKQ_LUA) + "/" + part + ".lua");
    REQUIRE(file);
    all << file.rdbuf();
  }
  return all.str();
}

struct Answer {
  Outcome outcome;
  int code;
};

std::int64_t whole(double value) { return std::isinf(value) ? kNever : static_cast<std::int64_t>(value); }

Answer answer_of(const std::string& reply) {
  REQUIRE(reply.size() == 80);
  std::array<double, 10> d{};
  std::memcpy(d.data(), reply.data(), reply.size());
  Answer a{};
  a.code = static_cast<int>(d[0]);
  a.outcome.decision.allowed = a.code == 1;
  a.outcome.decision.retry_after = whole(d[1]);
  a.outcome.decision.delay = whole(d[2]);
  a.outcome.next = {.at = whole(d[3]), .start = whole(d[4]), .used = whole(d[5]), .previous = whole(d[6]), .tail = whole(d[7]), .newest = whole(d[8])};
  return a;
}

std::vector<std::string> arguments(const Limit& limit, std::int64_t cost, Micros max_wait, bool padded) {
  const auto text = [](std::int64_t n) { return std::to_string(n); };
  const std::string anchor = limit.anchored ? text(limit.anchor) : "", life = "100000000";
  std::vector<std::string> all;
  switch (limit.algorithm()) {
    case Algorithm::meter: all = {text(limit.capacity * limit.d), text(limit.n), text(cost * limit.d), text(max_wait), life}; break;
    case Algorithm::two_counter:
      all = {text(limit.capacity), text(limit.window), text(cost), anchor, life, text(limit.tick), text(two_counter::window_ticks(limit))};
      break;
    case Algorithm::log: all = {text(limit.capacity), text(limit.window), text(cost), anchor, life, std::string(16, 'i')}; break;
    default: all = {text(limit.capacity), text(limit.window), text(cost), anchor, life};
  }
  while (padded && all.size() < 7) all.emplace_back();
  return all;
}

const char* name_of(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::meter: return "meter";
    case Algorithm::fixed_window: return "fixed_window";
    case Algorithm::two_counter: return "two_counter";
    default: return "log";
  }
}

std::string letter_of(Algorithm algorithm) { return algorithm == Algorithm::two_counter ? "c" : std::string(1, name_of(algorithm)[0]); }

std::string script_of(Algorithm algorithm) {
  const std::string name = name_of(algorithm);
  std::vector<std::string> parts{"clock_given", "record"};
  if (algorithm == Algorithm::two_counter) parts.emplace_back("fixed_window");
  parts.insert(parts.end(), {name, "one_" + name, "answer"});
  return source(parts);
}

using Engine = std::mt19937_64;
std::int64_t between(Engine& random, std::int64_t low, std::int64_t high) { return std::uniform_int_distribution<std::int64_t>(low, high)(random); }
std::int64_t spread(Engine& random, std::int64_t most) { return between(random, 1, std::int64_t{1} << between(random, 0, 63 - __builtin_clzll(static_cast<unsigned long long>(most)))); }

Limit random_limit(Engine& random, Kind kind) {
  for (;;) {
    Limit limit{.kind = kind};
    const std::int64_t most = kMaxProduct;
    if (algorithm_of(kind) == Algorithm::meter) {
      limit.capacity = kind == Kind::sliding_window_gcra ? spread(random, 100000) : spread(random, most);
      limit.d = spread(random, larger(1, most / limit.capacity / 2));
      limit.n = between(random, 0, 9) == 0 ? 0 : spread(random, most);
      if (limit.capacity > most / limit.d) continue;
      return limit;
    }
    limit.capacity = kind == Kind::sliding_window_log ? between(random, 1, 30) : spread(random, 1000);
    limit.window = spread(random, 1'000'000'000'000);
    limit.tick = kind == Kind::sliding_window_counter ? spread(random, larger(1, limit.window / 10)) : 1;
    limit.anchored = kind != Kind::sliding_window_log && between(random, 0, 1) == 1;
    limit.anchor = between(random, -1'000'000, 1'000'000);
    if (kind == Kind::sliding_window_counter && limit.capacity > most / two_counter::window_ticks(limit)) continue;
    return limit;
  }
}

Micros scale_of(const Limit& limit) {
  if (limit.algorithm() != Algorithm::meter) return limit.window;
  return limit.n == 0 ? 1'000'000 : larger(1, limit.capacity * limit.d / limit.n);
}

Micros any_time_after(Engine& random, const Limit& limit, Micros now) {
  switch (between(random, 0, 19)) {
    case 0: return now - 1'000'000 - spread(random, 10'000'000'000);                      // set back
    case 1: return larger(0, now - between(random, 1, 1'000'000));                        // jitter
    case 2: case 3: return now;
    case 4: return now + spread(random, 1'000'000'000'000);
    default: return now + between(random, 0, larger(1, scale_of(limit) / between(random, 1, 20)));
  }
}

// Below 2^52, as real times are.
Micros next_time(Engine& random, const Limit& limit, Micros now) { return larger(0, smaller(any_time_after(random, limit, now), kMaxProduct)); }

struct Model {
  Limit limit;
  bool exists = false;
  State state{};
  test::MemoryEntries entries{};

  Outcome take(Micros now, std::int64_t cost, Micros max_wait) {
    if (limit.algorithm() != Algorithm::log) {
      const State before = exists ? state : fresh(limit, now);
      return limit.algorithm() == Algorithm::meter ? meter::reserve(limit, before, now, cost, max_wait) : decide(limit, before, now, cost);
    }
    return log::decide(limit, exists ? state : log::fresh(limit, now), now, cost, entries);
  }

  void keep(const Outcome& outcome, std::int64_t cost) {
    const bool stepped = exists && outcome.next.at < state.at;
    if (!outcome.decision.allowed && !stepped) return;
    if (limit.algorithm() == Algorithm::log) {
      if (stepped) entries.move_future_to(outcome.next.at);
      if (outcome.decision.allowed) entries.add({outcome.next.used, cost, outcome.next.at});
    }
    state = outcome.next;
    exists = true;
  }
};

void same(const Limit& limit, const Answer& answer, const Outcome& outcome) {
  CHECK(answer.outcome.decision.allowed == outcome.decision.allowed);
  const Outcome& told = answer.outcome;
  CHECK(told.decision.retry_after == outcome.decision.retry_after);
  CHECK(told.decision.delay == outcome.decision.delay);
  CHECK(told.next.at == outcome.next.at);
  CHECK(told.next.start == outcome.next.start);
  CHECK(told.next.used == outcome.next.used);
  CHECK(told.next.previous == outcome.next.previous);
  if (limit.algorithm() != Algorithm::log) CHECK(told.next.tail == outcome.next.tail);
  CHECK(told.next.newest == outcome.next.newest);
}

// One bucket of several.lua, and what it was asked for.
struct Member {
  Model model;
  std::string key;
  std::int64_t cost = 0;
};

std::vector<std::string> words_of(const std::string& script, const char* mode, const std::vector<Member>& members, Micros now) {
  std::vector<std::string> words{"EVAL", script, std::to_string(2 * members.size())};
  for (const Member& m : members) words.insert(words.end(), {m.key, m.key + ":e"});
  words.emplace_back(mode);
  for (const Member& m : members) {
    words.push_back(letter_of(m.model.limit.algorithm()));
    for (const std::string& word : arguments(m.model.limit, m.cost, 0, true)) words.push_back(word);
  }
  words.push_back(std::to_string(now));
  return words;
}

const std::vector<std::string> all_parts{"clock_given", "record", "meter", "fixed_window", "two_counter", "log", "several"};
constexpr Kind all_kinds[] = {Kind::token_bucket, Kind::sliding_window_gcra, Kind::fixed_window, Kind::sliding_window_counter, Kind::sliding_window_log};

}  // namespace

TEST_CASE("each script is the core's twin") {
  Server server;
  server.ask({"FLUSHALL"});
  Engine random(test::seed());
  for (const Kind kind : all_kinds) {
    const std::string script = script_of(algorithm_of(kind));
    for (int round = 0; round < 100; ++round) {
      Model model{.limit = random_limit(random, kind)};
      const std::string key = "b" + std::to_string(static_cast<int>(kind)) + ":" + std::to_string(round);
      Micros now = between(random, 0, 2'000'000'000'000'000);
      for (int step = 0; step < 60; ++step) {
        now = next_time(random, model.limit, now);
        const std::int64_t cost = between(random, 0, 2) == 0 ? between(random, 1, model.limit.capacity) : spread(random, model.limit.capacity);
        const bool ahead = model.limit.algorithm() == Algorithm::meter && between(random, 0, 3) == 0;
        const Micros max_wait = ahead ? spread(random, 1'000'000'000'000) : 0;
        std::vector<std::string> words{"EVAL", script, "2", key, key + ":e"};
        for (const std::string& word : arguments(model.limit, cost, max_wait, false)) words.push_back(word);
        words.push_back(std::to_string(now));
        const Answer answer = answer_of(server.ask(words));
        const Outcome outcome = model.take(now, cost, max_wait);
        INFO(name_of(model.limit.algorithm()) << " capacity " << model.limit.capacity << " n " << model.limit.n << " d " << model.limit.d << " window "
             << model.limit.window << " tick " << model.limit.tick << " cost " << cost << " max_wait " << max_wait << " now " << now << " step " << step);
        same(model.limit, answer, outcome);
        model.keep(outcome, cost);
      }
    }
  }
}

TEST_CASE("several at once: all or nothing, or each on its own") {
  Server server;
  server.ask({"FLUSHALL"});
  Engine random(test::seed());
  const std::string script = source(all_parts);
  for (int round = 0; round < 60; ++round) {
    std::vector<Member> members;
    for (const Kind kind : all_kinds) members.push_back({{.limit = random_limit(random, kind)}, "s" + std::to_string(round) + ":" + std::to_string(members.size())});
    Micros now = between(random, 0, 2'000'000'000'000'000);
    for (int step = 0; step < 60; ++step) {
      now = next_time(random, members[static_cast<std::size_t>(between(random, 0, 4))].model.limit, now);
      const bool all = between(random, 0, 1) == 1;
      for (Member& m : members) m.cost = between(random, 0, 3) == 0 ? m.model.limit.capacity : spread(random, larger(1, m.model.limit.capacity / 8));
      const std::string reply = server.ask(words_of(script, all ? "all" : "each", members, now));
      REQUIRE(reply.size() == 80 * members.size());
      std::vector<Outcome> outcomes;
      bool allowed = true;
      for (Member& m : members) allowed = (outcomes.push_back(m.model.take(now, m.cost, 0)), outcomes.back().decision.allowed) && allowed;
      for (std::size_t i = 0; i < members.size(); ++i) {
        INFO("member " << i << " step " << step << " all " << all);
        same(members[i].model.limit, answer_of(reply.substr(80 * i, 80)), outcomes[i]);
        if (!all || allowed || !outcomes[i].decision.allowed) members[i].model.keep(outcomes[i], members[i].cost);
      }
    }
  }
}

TEST_CASE("a paused bucket is denied, keeps its state, and opens by itself") {
  Server server;
  server.ask({"FLUSHALL"});
  const Limit limit{.kind = Kind::token_bucket, .capacity = 5, .n = 1, .d = 1000};
  const auto ask = [&](Micros now) {
    std::vector<std::string> words{"EVAL", script_of(Algorithm::meter), "1", "paused"};
    for (const std::string& word : arguments(limit, 1, 0, false)) words.push_back(word);
    words.push_back(std::to_string(now));
    return answer_of(server.ask(words));
  };
  REQUIRE(ask(1000).code == 1);
  std::string record = server.ask({"GET", "paused"});
  REQUIRE(record.size() == 48);
  const double until = 5000;
  record.append(reinterpret_cast<const char*>(&until), sizeof until);
  server.ask({"SET", "paused", record});
  const Answer denied = ask(4999);
  CHECK(denied.code == 2);
  CHECK(denied.outcome.next.used == 1000);
  CHECK(server.ask({"GET", "paused"}) == record);
  CHECK(ask(5000).code == 1);
}
