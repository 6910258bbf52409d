// How an SQL function is written: SQL_FUNCTION(taskq_name) { ... return datum; }
//
// Names carry the prefix because the server loads all modules into one space of symbols.
// The body is C++ that owns nothing: an ereport(ERROR) jumps over it, and there is nothing to unwind.
#pragma once

#include "pg.hpp"

#define SQL_FUNCTION(name)                            \
  extern "C" {                                        \
  PGDLLEXPORT PG_FUNCTION_INFO_V1(name);              \
  PGDLLEXPORT Datum name(PG_FUNCTION_ARGS);           \
  }                                                   \
  extern "C" Datum name([[maybe_unused]] FunctionCallInfo fcinfo)
