#include "bucket_places.hpp"

#include "relations.hpp"

namespace taskq::pg {

namespace {

struct Place {
  int32 limit_id;
  uint32 hash;
  ItemPointerData at;
};

constexpr uint32 place_count = 16384;  // a power of two; a bucket whose place another one took is found through the index
constinit Place places[place_count]{};
constinit uint64 places_generation = 0;

}  // namespace

ItemPointerData* remembered_place(BucketName name) {
  if (places_generation != cache_generation) {
    for (Place& place : places) ItemPointerSetInvalid(&place.at);
    places_generation = cache_generation;
  }
  const uint32 hash = hash_combine(
      hash_bytes(reinterpret_cast<const unsigned char*>(name.key.data()), static_cast<int>(name.key.size())),
      static_cast<uint32>(name.limit_id));
  Place& place = places[hash & (place_count - 1)];
  if (place.limit_id != name.limit_id || place.hash != hash) {
    place.limit_id = name.limit_id;
    place.hash = hash;
    ItemPointerSetInvalid(&place.at);
  }
  return &place.at;
}

}  // namespace taskq::pg
