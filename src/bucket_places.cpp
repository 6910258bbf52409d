#include "bucket_places.hpp"

#include "relations.hpp"

#include "pg.hpp"

namespace taskq::pg {

namespace {

constexpr uint32 place_count = 16384;  // a power of two; a bucket whose place another one took is found through the index
constinit Places places[place_count]{};
constinit uint64 places_generation = 0;

void forget(Places& place) {
  ItemPointerSetInvalid(&place.newest);
  ItemPointerSetInvalid(&place.root);
}

}  // namespace

Places& remembered_places(BucketName name) {
  if (places_generation != cache_generation) {
    for (Places& place : places) forget(place);
    places_generation = cache_generation;
  }
  const uint32 hash = hash_combine(
      hash_bytes(reinterpret_cast<const unsigned char*>(name.key.data()), static_cast<int>(name.key.size())),
      static_cast<uint32>(name.limit_id));
  Places& place = places[hash & (place_count - 1)];
  if (place.limit_id != name.limit_id || place.hash != hash) {
    place.limit_id = name.limit_id;
    place.hash = hash;
    forget(place);
  }
  return place;
}

}  // namespace taskq::pg
