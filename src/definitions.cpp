#include "definitions.hpp"

#include "name_cache.hpp"
#include "relations.hpp"
#include "table_row.hpp"

#include "pg.hpp"

namespace taskq::pg {

using ratelimit::Inherit;
using ratelimit::Kind;
using ratelimit::Limit;

namespace {

// Column numbers of what makes up a Limit, in rate_limits and in rate_limit_versions.
struct LimitColumns {
  AttrNumber kind, style, anchor, scale, units, rate_n, rate_d, window_us, tick_us;
};

constexpr LimitColumns current_columns{4, 5, 10, 16, 17, 18, 19, 20, 21};
constexpr LimitColumns former_columns{3, 4, 5, 6, 7, 8, 9, 10, 11};

Kind kind_of(const TableRow& row, const LimitColumns& c) {
  const std::string_view kind = row.string(c.kind);
  if (kind == "token_bucket") return Kind::token_bucket;
  if (kind == "leaky_bucket") return Kind::leaky_bucket;
  if (kind == "fixed_window") return Kind::fixed_window;
  Kind style = Kind::sliding_window_log;
  if (!row.is_null(c.style)) style_from_text(row.string(c.style), style);
  return style;
}

Limit limit_of(const TableRow& row, const LimitColumns& c) {
  Limit limit{.kind = kind_of(row, c),
              .scale = DatumGetInt16(row.datum(c.scale)),
              .capacity = row.integer(c.units),
              .n = row.integer(c.rate_n),
              .d = row.integer(c.rate_d),
              .window = row.integer(c.window_us),
              .tick = row.integer(c.tick_us)};
  if (!row.is_null(c.anchor)) {
    limit.anchored = true;
    limit.anchor = row.integer(c.anchor);
  }
  return limit;
}

void fill(Definition& definition, const TableRow& row) {
  definition.limit_id = DatumGetInt32(row.datum(1));
  definition.version = DatumGetInt32(row.datum(3));
  definition.limit = limit_of(row, current_columns);
  definition.keyed = row.boolean(11);
  definition.shadow = row.boolean(13);
  definition.ad_hoc = row.boolean(14);
  definition.paused_until = row.integer(15);
  definition.max_keys = row.is_null(24) ? 0 : DatumGetInt32(row.datum(24));
}

constinit NameCache<Definition> cache{
    .title = "taskq_ratelimit definitions", .table = &Relations::limits, .by_name = &Relations::limits_by_name, .fill = fill};

}  // namespace

const Definition* find_definition(std::string_view name) { return cache.find(name); }

void forget_definitions() { cache.forget(); }

FormerDefinition former_definition(int32 limit_id, int32 version) {
  const Oid schema = get_namespace_oid("taskq", false);
  Relation table = table_open(get_relname_relid("rate_limit_versions", schema), AccessShareLock);
  Relation index = index_open(get_relname_relid("rate_limit_versions_pkey", schema), AccessShareLock);
  ScanKeyData keys[2];
  ScanKeyInit(&keys[0], 1, BTEqualStrategyNumber, F_INT4EQ, Int32GetDatum(limit_id));
  ScanKeyInit(&keys[1], 2, BTEqualStrategyNumber, F_INT4EQ, Int32GetDatum(version));
  FormerDefinition former{};
  const bool found = with_row(table, index, keys, 2, [&](TableRow row) {
    former.limit = limit_of(row, former_columns);
    inherit_from_text(row.string(12), former.inherit);
    former.ended_at = row.integer(13);
  });
  index_close(index, AccessShareLock);
  table_close(table, AccessShareLock);
  if (!found) elog(ERROR, "version %d of limit %d is missing in taskq.rate_limit_versions", version, limit_id);
  return former;
}

const char* kind_text(Kind kind) {
  switch (kind) {
    case Kind::token_bucket: return "token_bucket";
    case Kind::leaky_bucket: return "leaky_bucket";
    case Kind::fixed_window: return "fixed_window";
    default: return "sliding_window";
  }
}

const char* style_text(Kind kind) {
  switch (kind) {
    case Kind::sliding_window_log: return "log";
    case Kind::sliding_window_gcra: return "gcra";
    case Kind::sliding_window_counter: return "counter";
    default: return nullptr;
  }
}

bool style_from_text(std::string_view text, Kind& kind) {
  for (Kind k : {Kind::sliding_window_log, Kind::sliding_window_gcra, Kind::sliding_window_counter}) {
    if (text == style_text(k)) return kind = k, true;
  }
  return false;
}

const char* inherit_text(Inherit inherit) {
  switch (inherit) {
    case Inherit::consumed: return "consumed";
    case Inherit::as_is: return "as_is";
    case Inherit::proportional: return "proportional";
    case Inherit::additive: return "additive";
    default: return "reset";
  }
}

bool inherit_from_text(std::string_view text, Inherit& inherit) {
  for (Inherit i : {Inherit::consumed, Inherit::as_is, Inherit::proportional, Inherit::additive, Inherit::reset}) {
    if (text == inherit_text(i)) return inherit = i, true;
  }
  return false;
}

}  // namespace taskq::pg
