#include "errors.hpp"

#include "settings.hpp"

#include "pg.hpp"

namespace taskq::pg {

using ratelimit::DefinitionError;

namespace {

struct Rule {
  const char* message;
  const char* hint;
};

Rule rule_of(DefinitionError error) {
  switch (error) {
    case DefinitionError::capacity_not_positive: return {"capacity must be a finite number above 0", "Give how much a full bucket holds."};
    case DefinitionError::capacity_too_large: return {"capacity is too large", "The most is 2^52 units; with fractions or a fine rate it is less."};
    case DefinitionError::capacity_too_small: return {"capacity is below the smallest unit", "The smallest unit is 0.000001."};
    case DefinitionError::rate_negative: return {"refill rate must be a finite number, 0 or above", "Use 0 for a quota that never refills."};
    case DefinitionError::rate_too_large: return {"refill rate is too large", "The most is about 4.5e15 units per microsecond."};
    case DefinitionError::rate_inexact:
      return {"refill rate cannot be represented for this capacity", "Rates are kept to 1 part in 100000 or better; use a smaller capacity or a rounder rate."};
    case DefinitionError::refill_too_slow: return {"a full refill would take more than 142 years", "The bound is 2^52 microseconds; raise the rate, or use 0 for never."};
    case DefinitionError::period_not_positive: return {"refill period must be above 0", "Give a period such as interval '1 minute'."};
    case DefinitionError::period_too_long: return {"refill period is too long", "The bound is 2^52 microseconds, about 142 years."};
    case DefinitionError::requests_not_positive: return {"max_requests must be at least 1", "To stop everything use taskq.pause()."};
    case DefinitionError::requests_too_large:
      return {"max_requests is too large for this period", "The most is 2^52; styles counter and gcra also need max_requests and period to fit together."};
    case DefinitionError::window_not_positive: return {"period must be above 0", "Give a period such as interval '1 minute'."};
    case DefinitionError::window_too_long: return {"period is too long", "The bound is 2^52 microseconds, about 142 years."};
    case DefinitionError::none: break;
  }
  return {"invalid definition", "See the reference."};
}

}  // namespace

void raise_null(const char* argument) {
  ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("argument \"%s\" must not be null", argument),
                  errdetail("Got NULL."), errhint("Leave the argument out to get its default, if it has one.")));
}

void raise_invalid(const char* message, const char* detail, const char* hint) {
  ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("%s", message), errdetail("%s", detail), errhint("%s", hint)));
}

void raise_unknown(std::string_view name) {
  ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("rate limit \"%s\" does not exist", shown(name)),
                  errdetail("No limit of this name is registered."),
                  errhint("Register it, for example with taskq.register_token_bucket(), or look into taskq.rate_limits.")));
}

void raise_unknown_reservation(std::string_view name) {
  ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("reservation \"%s\" does not exist", shown(name)),
                  errdetail("No reservation of this name is registered."),
                  errhint("Register it with taskq.register_reservation(), or look into taskq.reservations.")));
}

void raise_reservation_in_use(const char* name) {
  ereport(ERROR, (errcode(ERRCODE_LOCK_NOT_AVAILABLE), errmsg("reservation \"%s\" is in use by another transaction", name),
                  errdetail("Waited %d ms.", lock_timeout), errhint("Try again, or raise taskq_ratelimit.lock_timeout.")));
}

void raise_definition(DefinitionError error, const char* value) {
  const Rule rule = rule_of(error);
  raise_invalid(rule.message, value, rule.hint);
}

void check_may_write(const char* function) {
  if (XactReadOnly) {
    ereport(ERROR, (errcode(ERRCODE_READ_ONLY_SQL_TRANSACTION),
                    errmsg("cannot execute taskq.%s() in a read-only transaction", function),
                    errdetail("It has to change the state of a limit."),
                    RecoveryInProgress()
                        ? errhint("This server is a standby: call it on the primary. taskq.peek() and taskq.preview() work here.")
                        : errhint("Call it in a READ WRITE transaction. taskq.peek() and taskq.preview() work in this one.")));
  }
  if (IsInParallelMode()) {
    ereport(ERROR, (errcode(ERRCODE_INVALID_TRANSACTION_STATE),
                    errmsg("cannot execute taskq.%s() during a parallel operation", function),
                    errdetail("It has to change the state of a limit."), errhint("Call it outside of parallel queries.")));
  }
}

const char* number_text(double number) { return psprintf("%.15g", number); }

bool is_control(std::string_view text, std::size_t position) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (at(position) < 0x20 || at(position) == 0x7f) return true;
  return GetDatabaseEncoding() == PG_UTF8 && at(position) == 0xc2 && position + 1 < text.size() && at(position + 1) < 0xa0;
}

const char* shown(std::string_view text) {
  const int length = text.size() <= 64 ? static_cast<int>(text.size()) : pg_mbcliplen(text.data(), static_cast<int>(text.size()), 64);
  char* copy = pnstrdup(text.data(), static_cast<Size>(length));
  const std::string_view bytes{copy, static_cast<std::size_t>(length)};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (!is_control(bytes, i)) continue;
    if (static_cast<unsigned char>(copy[i]) == 0xc2) copy[i + 1] = '?';
    copy[i] = '?';
  }
  return text.size() <= 64 ? copy : psprintf("%s...", copy);
}

}  // namespace taskq::pg
