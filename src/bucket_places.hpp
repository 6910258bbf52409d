// Where this backend last saw a bucket's newest version. Only a hint: who follows it checks that the row is the bucket's.
#pragma once

#include "bucket_store.hpp"

#include "pg.hpp"

namespace taskq::pg {

// The remembered place of a bucket, to read or overwrite; not valid if none is. Forgets everything when the tables change.
ItemPointerData* remembered_place(BucketName name);

}  // namespace taskq::pg
