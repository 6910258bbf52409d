#include "define.hpp"

#include "bucket_ops.hpp"
#include "clock.hpp"
#include "errors.hpp"
#include "owner.hpp"
#include "relations.hpp"

#include "pg.hpp"

namespace taskq::pg {

using ratelimit::Limit;

namespace {

// One definer of a name at a time, until its transaction ends. Whoever comes next reads what the one before has committed, and
// meets no row that is being written: so no isolation level makes a difference.
void lock_name(std::string_view name) {
  const uint32 hash = hash_bytes(reinterpret_cast<const unsigned char*>(name.data()), static_cast<int>(name.size()));
  LockDatabaseObject(relations().limits, hash, 0, ExclusiveLock);
}

// Values for one statement, collected by position.
struct Values {
  Datum datums[24];
  Oid types[24];
  char nulls[24];
  int count = 0;

  void add(Oid type, Datum value, bool null = false) {
    types[count] = type;
    datums[count] = value;
    nulls[count++] = null ? 'n' : ' ';
  }
  void text(const char* value) { add(TEXTOID, value == nullptr ? Datum{0} : CStringGetTextDatum(value), value == nullptr); }
};

Interval* window_interval(ratelimit::Micros window) {
  auto* interval = static_cast<Interval*>(palloc0(sizeof(Interval)));
  interval->time = window;
  return interval;
}

// $1 .. $16: name, kind, style, capacity, refill, max_requests, period, anchor, keyed, shadow, scale, units, n, d, window, tick.
void add_definition(Values& v, const Wanted& wanted) {
  const Limit& limit = wanted.limit;
  const bool is_bucket = limit.window == 0;
  v.add(TEXTOID, PointerGetDatum(cstring_to_text_with_len(wanted.name.data(), static_cast<int>(wanted.name.size()))));
  v.text(kind_text(limit.kind));
  v.text(style_text(limit.kind));
  v.add(FLOAT8OID, Float8GetDatum(ratelimit::to_amount(limit, limit.capacity * limit.d)), !is_bucket);
  v.add(FLOAT8OID, Float8GetDatum(wanted.refill_per_second), !is_bucket);
  v.add(INT8OID, Int64GetDatum(limit.capacity), is_bucket);
  v.add(INTERVALOID, IntervalPGetDatum(window_interval(limit.window)), is_bucket);
  v.add(TIMESTAMPTZOID, TimestampTzGetDatum(limit.anchor), !limit.anchored);
  v.add(BOOLOID, BoolGetDatum(wanted.keyed));
  v.add(BOOLOID, BoolGetDatum(wanted.shadow));
  v.add(INT2OID, Int16GetDatum(static_cast<int16>(limit.scale)));
  v.add(INT8OID, Int64GetDatum(limit.capacity));
  v.add(INT8OID, Int64GetDatum(limit.n));
  v.add(INT8OID, Int64GetDatum(limit.d));
  v.add(INT8OID, Int64GetDatum(limit.window));
  v.add(INT8OID, Int64GetDatum(limit.tick));
}

void insert(const Wanted& wanted) {
  Values v;
  add_definition(v, wanted);
  v.add(BOOLOID, BoolGetDatum(wanted.ad_hoc));
  v.add(TIMESTAMPTZOID, TimestampTzGetDatum(clock_now()));
  v.add(INT4OID, Int32GetDatum(wanted.max_keys), wanted.max_keys == 0);
  run_as_owner("INSERT INTO taskq.rate_limits (name, kind, style, capacity, refill_per_second, max_requests, period, anchor, "
               "keyed, storage, shadow, scale, units, rate_n, rate_d, window_us, tick_us, ad_hoc, changed_at, max_keys) "
               "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'table', $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)",
               v.count, v.types, v.datums, v.nulls);
}

// Puts the present definition aside for buckets written under it.
void keep_former(const Definition& former, ratelimit::Inherit inherit) {
  Values v;
  v.add(INT4OID, Int32GetDatum(former.limit_id));
  v.text(inherit_text(inherit));
  v.add(TIMESTAMPTZOID, TimestampTzGetDatum(clock_now()));
  execute("INSERT INTO taskq.rate_limit_versions (limit_id, version, kind, style, anchor, scale, units, rate_n, rate_d, window_us, "
          "tick_us, inherit, ended_at) SELECT limit_id, version, kind, style, anchor, scale, units, rate_n, rate_d, window_us, "
          "tick_us, $2, $3 FROM taskq.rate_limits WHERE limit_id = $1",
          v.count, v.types, v.datums, v.nulls);
}

void update(const Wanted& wanted, const Definition& former) {
  const OwnerRun run = begin_as_owner();
  const bool same_limit = wanted.limit == former.limit;
  if (!same_limit) keep_former(former, wanted.inherit);
  Values v;
  add_definition(v, wanted);
  v.add(INT4OID, Int32GetDatum(same_limit ? 0 : 1));
  v.add(TIMESTAMPTZOID, TimestampTzGetDatum(clock_now()));
  v.add(BOOLOID, BoolGetDatum(wanted.ad_hoc));
  v.add(INT4OID, Int32GetDatum(wanted.max_keys), wanted.max_keys == 0);
  execute("UPDATE taskq.rate_limits SET kind = $2, style = $3, capacity = $4, refill_per_second = $5, max_requests = $6, period = $7, "
          "anchor = $8, keyed = $9, shadow = $10, scale = $11, units = $12, rate_n = $13, rate_d = $14, window_us = $15, "
          "tick_us = $16, version = version + $17, changed_at = $18, ad_hoc = $19, max_keys = $20 "
          "WHERE name = $1",
          v.count, v.types, v.datums, v.nulls);
  end_as_owner(run);
}

bool is_same(const Wanted& wanted, const Definition& present) {
  return wanted.limit == present.limit && wanted.keyed == present.keyed && wanted.shadow == present.shadow &&
         wanted.ad_hoc == present.ad_hoc && wanted.max_keys == present.max_keys;
}

// An ad-hoc call never changes what was registered.
bool may_replace(const Wanted& wanted, const Definition& present) { return wanted.replace && (present.ad_hoc || !wanted.ad_hoc); }

const char* limit_text(const Limit& limit) {
  const char* most = number_text(ratelimit::to_amount(limit, limit.capacity * limit.d));
  if (limit.window > 0) {
    const char* style = style_text(limit.kind);
    return psprintf("%s%s%s, %s in %s seconds%s", kind_text(limit.kind), style == nullptr ? "" : " of style ", style == nullptr ? "" : style, most,
                    number_text(static_cast<double>(limit.window) / 1e6), limit.anchored ? ", anchored" : "");
  }
  const double units = static_cast<double>(limit.d) * static_cast<double>(ratelimit::power_of_ten(limit.scale));
  return psprintf("%s of %s, refilled by %s per second", kind_text(limit.kind), most, number_text(static_cast<double>(limit.n) * 1e6 / units));
}

// Of what is asked for or registered.
template <class Definition>
const char* definition_text(const Definition& d) {
  const char* most = d.max_keys == 0 ? "" : psprintf(", at most %d keys", d.max_keys);
  return psprintf("%s%s%s%s%s", limit_text(d.limit), d.keyed ? ", keyed" : "", most, d.shadow ? ", shadow" : "",
                  d.ad_hoc ? ", defined by a call" : "");
}

[[noreturn]] void raise_other_definition(const Wanted& wanted, const Definition& present) {
  ereport(ERROR, (errcode(ERRCODE_DUPLICATE_OBJECT), errmsg("rate limit \"%s\" is registered with another definition", present.name),
                  errdetail("Registered: %s. Asked for: %s.", definition_text(present), definition_text(wanted)),
                  errhint("Register it with replace => true to change it, and inherit to say what becomes of what was used.")));
}

// A limit without keys has its bucket from the start: its windows begin at registration, and its first use is like any other.
void create_bucket(std::string_view name) {
  Call call{};
  call.name = name;
  resolve(call);
  create_if_missing(call);
}

}  // namespace

bool define(const Wanted& wanted) {
  const Definition* present = find_definition(wanted.name);
  if (present != nullptr && is_same(wanted, *present)) return false;
  lock_name(wanted.name);
  present = find_definition(wanted.name);
  if (present == nullptr) {
    insert(wanted);
  } else {
    if (is_same(wanted, *present) || (wanted.ad_hoc && wanted.limit == present->limit)) return false;
    if (!may_replace(wanted, *present)) raise_other_definition(wanted, *present);
    update(wanted, Definition{*present});
  }
  if (!wanted.keyed) create_bucket(wanted.name);
  return true;
}

const Definition* define_ad_hoc(const Wanted& wanted) {
  const Definition* present = find_definition(wanted.name);
  if (present != nullptr && present->limit == wanted.limit) return present;
  if (present != nullptr && !present->ad_hoc) raise_other_definition(wanted, *present);
  define(wanted);
  present = find_definition(wanted.name);
  if (present == nullptr) elog(ERROR, "ad-hoc definition vanished while it was used");
  return present;
}

void pause_limit_until(const Definition& definition, TimestampTz until) {
  lock_name(definition.name);
  Values v;
  v.add(INT4OID, Int32GetDatum(definition.limit_id));
  v.add(TIMESTAMPTZOID, TimestampTzGetDatum(until));
  run_as_owner("UPDATE taskq.rate_limits SET paused_until = $2 WHERE limit_id = $1", v.count, v.types, v.datums, v.nulls);
}

void drop_definition(const Definition& definition) {
  lock_name(definition.name);
  Values v;
  v.add(INT4OID, Int32GetDatum(definition.limit_id));
  const OwnerRun run = begin_as_owner();
  execute("DELETE FROM taskq.rate_limits WHERE limit_id = $1", v.count, v.types, v.datums, v.nulls);
  execute("DELETE FROM taskq.rate_limit_versions WHERE limit_id = $1", v.count, v.types, v.datums, v.nulls);
  execute("DELETE FROM taskq.rate_limit_window_entries AS e USING taskq.rate_limit_buckets AS b "
          "WHERE b.limit_id = $1 AND b.bucket_id <> 0 "
          "AND e.bucket_id = b.bucket_id",
          v.count, v.types, v.datums, v.nulls);
  execute("DELETE FROM taskq.rate_limit_buckets WHERE limit_id = $1", v.count, v.types, v.datums, v.nulls);
  execute("DELETE FROM taskq.rate_limit_refunds WHERE limit_id = $1", v.count, v.types, v.datums, v.nulls);
  end_as_owner(run);
}

}  // namespace taskq::pg
