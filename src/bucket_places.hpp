// Where this backend last saw a bucket. Only hints: who follows them checks that the row there is the bucket's.
#pragma once

#include <string_view>

#include "pg.hpp"

namespace taskq::pg {

struct BucketName {
  int32 limit_id = 0;
  std::string_view key;
};

struct Places {
  int32 limit_id;
  uint32 hash;
  uint32 generation;       // of all caches, when the places were noted
  ItemPointerData newest;  // the newest version when last seen: best while versions pile up
  ItemPointerData root;    // the line pointer that the index knows: stays when older versions are cleaned away
};

// The places of a bucket, to read or overwrite; not valid if none are known. Forgets everything when the tables change.
Places& remembered_places(BucketName name);

}  // namespace taskq::pg
