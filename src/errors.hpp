// Errors that users can cause: one function each, with SQLSTATE, message, the value in the detail and the cure in the hint.
#pragma once

#include <string_view>

#include "taskq_ratelimit/definition.hpp"

#include "pg.hpp"

namespace taskq::pg {

// A NULL where a value is needed (22004).
[[noreturn]] void raise_null(const char* argument);

// Anything out of range or malformed (22023). `detail` and `hint` are finished sentences.
[[noreturn]] void raise_invalid(const char* message, const char* detail, const char* hint);

// No limit of this name (42704).
[[noreturn]] void raise_unknown(std::string_view name);

// No reservation of this name (42704).
[[noreturn]] void raise_unknown_reservation(std::string_view name);

// Another transaction has it in hand, and the time is up (55P03).
[[noreturn]] void raise_reservation_in_use(const char* name);

// A definition that breaks a rule (22023); `value` describes what was given.
[[noreturn]] void raise_definition(ratelimit::DefinitionError error, const char* value);

// Raises 25006 if the transaction may not write. `function` is the name without schema.
void check_may_write(const char* function);

// A number as a user would write it, palloc'd.
const char* number_text(double number);

// True if a control character begins there: C0 and DEL; in UTF-8 also C1, which terminals obey, too.
bool is_control(std::string_view text, std::size_t position);

// A name or key for a message: cut after 64 bytes, control characters replaced.
const char* shown(std::string_view text);

}  // namespace taskq::pg
