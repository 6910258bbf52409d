// Actors: what a kind of job needs before it may run. One row of taskq.actors each, read without a snapshot as definitions are, so a
// change is seen by the next call.
#pragma once

#include <string_view>

#include "resource.hpp"

#include "pg.hpp"

namespace taskq::pg {

constexpr int max_actor_resources = 999;  // with the cap of the queue as many as a group may have

struct ActorResource {
  ResourceKind kind = ResourceKind::rate_limit;
  std::string_view name;
  bool keyed = false;
  Datum key_path{};  // jsonpath: where the payload has the key, if keyed
};

// In the order in which they are asked: reservations, then rate limits, each in the order of registration.
struct Actor {
  std::string_view name;
  bool has_queue = false;
  std::string_view queue;
  ActorResource* resources = nullptr;
  int count = 0;
  int reservations = 0;  // how many of them
};

// False if there is none.
bool find_actor(std::string_view name, Actor& actor);

// Raises 42704 if there is none.
Actor needed_actor(std::string_view name);
[[noreturn]] void raise_unknown_actor(std::string_view name);

const char* path_text(const ActorResource& resource);

}  // namespace taskq::pg
