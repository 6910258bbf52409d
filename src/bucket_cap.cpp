#include "bucket_cap.hpp"

#include "bucket_ops.hpp"
#include "bucket_round.hpp"
#include "key_cap.hpp"
#include "settings.hpp"

#include "pg.hpp"

namespace taskq::pg {

namespace {

constexpr Size shortest_key = 2;  // one byte and its length

int32 most_keys(const Definition& definition) { return definition.max_keys > 0 ? definition.max_keys : max_keys_per_limit; }

}  // namespace

bool has_room_for_bucket(const Call& call, CapUse use) {
  if (call.key.empty() || most_keys(call.definition) == 0) return true;
  Tables tables = open_tables(call.definition, use == CapUse::make ? RowExclusiveLock : AccessShareLock);
  KeySpace keys{.rows = tables.buckets, .owner = call.definition.limit_id, .most = most_keys(call.definition),
                .row_bytes = sizeof(BucketRow) + shortest_key, .key_of = bucket_key};
  Call other = call;
  const bool room = make_room(keys, [&](std::string_view key) {
    other.key = key;
    return use == CapUse::make ? evict_bucket(other, DT_NOEND) : is_idle_bucket(other, DT_NOEND);
  });
  close_tables(tables);
  return room;
}

}  // namespace taskq::pg
