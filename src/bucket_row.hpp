// A row of taskq.rate_limit_buckets as it lies on the page: all columns before the key are fixed-width and never null, so the
// row can be read and patched in place. The column order in the SQL script is this order; a test compares them.
#pragma once

#include <cstddef>
#include <string_view>

#include "taskq_ratelimit/state.hpp"

#include "pg.hpp"

namespace taskq::pg {

struct BucketRow {
  int32 limit_id;
  int32 version;    // of the definition under which the state was written
  int64 bucket_id;  // names the bucket's window entries; 0 if it never had any
  ratelimit::State state;
  TimestampTz paused_until;  // -infinity when not paused
};

constexpr int bucket_columns = 11;
constexpr AttrNumber bucket_key_column = 11;

static_assert(sizeof(BucketRow) == 72 && offsetof(BucketRow, state) == 16 && offsetof(BucketRow, paused_until) == 64);

inline BucketRow* bucket_row(HeapTuple tuple) { return reinterpret_cast<BucketRow*>(GETSTRUCT(tuple)); }

inline std::string_view bucket_key(HeapTuple tuple) {
  auto* key = reinterpret_cast<varlena*>(reinterpret_cast<char*>(GETSTRUCT(tuple)) + sizeof(BucketRow));
  return {VARDATA_ANY(key), static_cast<std::size_t>(VARSIZE_ANY_EXHDR(key))};
}

}  // namespace taskq::pg
