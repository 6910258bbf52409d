#include "bucket_places.hpp"

#include "relations.hpp"

#include "pg.hpp"

namespace taskq::pg {

namespace {

// A power of two; a bucket whose place another one took is found through the index. Memory is only touched where it is used.
constexpr uint32 place_count = 65536;
constinit Places places[place_count]{};

}  // namespace

Places& remembered_places(BucketName name) {
  const uint32 hash = hash_combine(
      hash_bytes(reinterpret_cast<const unsigned char*>(name.key.data()), static_cast<int>(name.key.size())),
      static_cast<uint32>(name.limit_id));
  Places& place = places[hash & (place_count - 1)];
  const auto generation = static_cast<uint32>(cache_generation);
  if (place.limit_id == name.limit_id && place.hash == hash && place.generation == generation) return place;
  place.limit_id = name.limit_id;
  place.hash = hash;
  place.generation = generation;
  ItemPointerSetInvalid(&place.newest);
  ItemPointerSetInvalid(&place.root);
  return place;
}

}  // namespace taskq::pg
