#include "relations.hpp"
#include "settings.hpp"
#include "sql_function.hpp"
#include "stats_table.hpp"
#include "sweeper.hpp"
#include "taskq_ratelimit/version.hpp"

#include "pg.hpp"

extern "C" {
PGDLLEXPORT PG_MODULE_MAGIC;
PGDLLEXPORT void _PG_init(void);
}

void _PG_init() {
  taskq::pg::define_settings();
  taskq::pg::watch_relations();
  taskq::pg::register_sweeper();
  taskq::pg::register_stats();
}

SQL_FUNCTION(taskq_version) { PG_RETURN_TEXT_P(cstring_to_text(taskq::ratelimit::kVersion)); }
