// What goes to the scripts and what comes back: names of keys, numbers, records. Thread-safety: pure functions.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "connection.hpp"
#include "taskq/backend.hpp"
#include "taskq_ratelimit/state.hpp"

namespace taskq::redis {

// Keys of one bucket. The hash tag is prefix and name, so all buckets of a limit lie in one slot of a cluster, and a script may use
// all keys of a bucket. What a user wrote is escaped where it could end the tag.
struct BucketKeys {
  std::string record;   // prefix:b:{name}:numbers:key
  std::string entries;  // of a sliding log
  std::string marks;    // begins the names of marks, see mark_of
};
BucketKeys keys_of(std::string_view prefix, const LimitDefinition& limit, std::string_view key);

// The mark that one decision was given back.
std::string mark_of(const BucketKeys& keys, const ratelimit::Taken& taken, RequestId id);

std::string escaped(std::string_view text);

// How long a record is kept, in milliseconds: at least until it says no more than "full".
std::int64_t life_of(const LimitDefinition& limit, Duration quota_life);

// As the scripts for one decision take them; eight for several.lua, with the letter of the algorithm before.
std::vector<std::string> take_arguments(const Request& request, std::int64_t life, RequestId id);
void append_for_several(std::vector<std::string>& words, const Request& request, std::int64_t life, RequestId id);

// A script's answer, checked. Throws BackendError if it cannot be one.
Answer take_answer(const Request& request, std::string_view reply, RequestId id);

struct Record {
  ratelimit::State state;
  Micros paused_until = 0;  // 0: not paused; kNever
};
std::string to_text(const Record& record);
std::optional<Record> from_text(std::string_view text);  // none for an empty text; throws BackendError for any other that is no record

// Doubles one after the other, as pack('<d...') writes them. Throws BackendError unless there are exactly `count`, all whole or infinite.
std::vector<Micros> numbers_of(std::string_view text, std::size_t count);

std::string_view text_of(const redisReply& reply);  // throws BackendError if it is none
std::string id_text(RequestId id);                  // its 16 bytes

}  // namespace taskq::redis
