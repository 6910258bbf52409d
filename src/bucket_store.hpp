// The rows of taskq.rate_limit_buckets, read and written through the access methods.
//
// Locking protocol
// (1) A bucket's truth is the newest version of its row that is committed or our own, whatever the isolation level.
// (2) Who wants to change a bucket reads that version, reads the clock, decides, and replaces exactly that version
//     (compare and swap on the row: heap_update refuses if anybody else replaced it first). A refusal starts over.
//     So the clock is read while nobody else can have changed the state, and stored times never go back.
// (3) A replaced row stays locked until the transaction ends; who meets it waits (row_wait.hpp), and decides anew.
// (4) A denial needs no lock: it is correct for the newest committed version, so it never waits and writes nothing.
// (5) A bucket is born by a speculative insertion: of two at once, one finds the other's index entry and backs out.
// (6) Window entries (entry_store.hpp) belong to the bucket: they change only in a transaction that has replaced its row.
// (7) Whoever runs this holds a snapshot, which keeps the versions that were read, and so their places, from being cleaned away:
//     else another version could stand where (2) expects the one that was read.
// Nothing here raises a serialization failure: no snapshot decides what is seen.
#pragma once

#include <string_view>

#include "bucket_places.hpp"
#include "bucket_row.hpp"
#include "relations.hpp"
#include "row_chain.hpp"

#include "pg.hpp"

namespace taskq::pg {

using FoundBucket = FoundRow;

// Finds the newest version. `to_change` also cleans its page of dead versions first, if the page is nearly full.
FoundBucket find_bucket(OpenTable& buckets, BucketName name, bool to_change);

// Replaces the version `found` by `changed`, a patched copy. False if it is no longer the newest or is locked.
bool replace_bucket(OpenTable& buckets, BucketName name, const FoundBucket& found, HeapTuple changed);

// Inserts the first version. False if somebody else is doing the same.
bool insert_bucket(OpenTable& buckets, BucketName name, const BucketRow& row);

// Deletes the version `found`. False if it is no longer the newest or is locked.
bool delete_bucket(OpenTable& buckets, HeapTuple found);

// True if `found` has been replaced or deleted by a committed transaction since it was read.
bool is_superseded(OpenTable& buckets, HeapTuple found);

}  // namespace taskq::pg
