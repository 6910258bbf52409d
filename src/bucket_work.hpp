// One attempt at changing or reading a bucket: its state, the time, and the plan for its window entries.
#pragma once

#include <string_view>

#include "bucket_store.hpp"
#include "definitions.hpp"
#include "entry_store.hpp"
#include "taskq_ratelimit/decide.hpp"
#include "taskq_ratelimit/log.hpp"

#include "pg.hpp"

namespace taskq::pg {

// What is to happen to the window entries once the bucket's row has been replaced, in this order.
struct EntryPlan {
  bool pull_back = false;        // entries of the future become entries of `now`: the clock was set back
  int64 keep_upto = -1;          // >= 0: delete everything newer (the last one that stays may become smaller)
  int64 take_from_target = 0;    // > 0: take so many units out of `target` and renumber what follows
  StoredEntry target{};
  bool add = false;
  ratelimit::log::Entry added{};
  pg_uuid_t added_id{};
  StoredEntry doomed[4];         // have left the window
  int doomed_count = 0;
};

struct Work {
  const Definition& definition;
  std::string_view key;
  BucketRow row{};
  bool existed = false;
  ratelimit::Micros now = 0;
  Entries entries{};             // for logs
  EntryPlan plan{};

  const ratelimit::Limit& limit() const { return definition.limit; }
  bool is_log() const { return definition.limit.algorithm() == ratelimit::Algorithm::log; }
  ratelimit::State& state() { return row.state; }
};

// The state of the bucket at `now` under the present definition.
ratelimit::State advanced(Work& work);

// If the state was written under a former definition, carries it over. True if the row has to be written.
bool bring_up_to_date(Work& work);

// Puts the oldest entries that have left onto the plan.
void plan_trim(Work& work);

// Plans to take `units` out of the entry of `request_id`; returns how many it will take.
int64 plan_take(Work& work, const pg_uuid_t& request_id, int64 units);

// Plans to drop the newest `units`; returns how many it will drop.
int64 plan_drop_newest(Work& work, int64 units);

// Plans an entry for `cost` units taken at the state's time. REQUIRES: the state already counts them.
void plan_add(Work& work, int64 cost);

// Carries the plan out. REQUIRES: the bucket's row has been replaced by this transaction.
void carry_out(Work& work);

}  // namespace taskq::pg
