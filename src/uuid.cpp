#include "uuid.hpp"

#include <cstring>

#include "epoch.hpp"

#include "pg.hpp"

namespace taskq::pg {

pg_uuid_t new_uuid(ratelimit::Micros at) {
  pg_uuid_t id;
  if (!pg_strong_random(id.data, UUID_LEN)) {
    ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR), errmsg("could not generate random values")));
  }
  const auto millis = static_cast<uint64>((at + unix_epoch) / 1000);
  for (int i = 0; i < 6; ++i) id.data[i] = static_cast<unsigned char>(millis >> (40 - 8 * i));
  id.data[6] = static_cast<unsigned char>((id.data[6] & 0x0f) | 0x70);
  id.data[8] = static_cast<unsigned char>((id.data[8] & 0x3f) | 0x80);
  return id;
}

bool same_uuid(const pg_uuid_t& a, const pg_uuid_t& b) { return std::memcmp(a.data, b.data, UUID_LEN) == 0; }

}  // namespace taskq::pg
