EXTENSION  = taskq_ratelimit
MODULE_big = $(EXTENSION)
OBJS       = $(patsubst %.cpp,%.o,$(wildcard src/*.cpp))
DATA       = $(wildcard sql/$(EXTENSION)--*.sql)

PG_CONFIG   ?= pg_config
PG_CPPFLAGS  = -Iinclude -isystem $(shell $(PG_CONFIG) --includedir-server 2>/dev/null)
PG_CXXFLAGS  = -std=c++20 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-register \
               -fno-exceptions -fno-rtti -fvisibility=hidden $(WERROR)
EXTRA_CLEAN  = $(OBJS:.o=.d) build results regression.diffs regression.out

PGXS := $(shell $(PG_CONFIG) --pgxs 2>/dev/null)
ifeq ($(wildcard $(PGXS)),)
# Nothing can be built yet: only the targets that install what is missing work, and start make again.
.DEFAULT_GOAL = all
all install clean check-symbols:
	@echo "The PostgreSQL server headers are missing: run 'make packages' (Debian: apt-get install postgresql-server-dev-15)." >&2
	@exit 1
else
include $(PGXS)

# The JIT bitcode is built with flags of its own, and no headers are tracked.
BITCODE_CXXFLAGS += $(PG_CXXFLAGS)
$(OBJS): override CXXFLAGS += -MMD -MP
$(OBJS:.o=.bc): %.bc: %.o
-include $(OBJS:.o=.d)

# The module must not need the C++ runtime: nothing to unwind, nothing to leak. And it exports its SQL functions only.
check-symbols: all
	@! nm -DC --undefined-only $(EXTENSION)$(DLSUFFIX) | \
	   grep -E ' U (std::|operator (new|delete)|__cxa_|__gxx_|_Unwind|abort)'
	@! nm -D --defined-only $(EXTENSION)$(DLSUFFIX) | grep -vE ' T (Pg_magic_func|_PG_init|(pg_finfo_)?taskq_[a-z_]+)$$'

# Every header of the core stands alone, in both compilers.
check-headers:
	@for header in $(patsubst include/%,%,$(wildcard include/taskq_ratelimit/*.hpp)); do \
	  for compiler in $(CXX) clang++-14; do \
	    echo "#include \"$$header\"" | $$compiler -std=c++20 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Werror \
	      -Iinclude -fsyntax-only -x c++ - || exit 1; \
	  done; \
	done

include test/unit/unit.mk docs/pictures/pictures.mk redis_client/client.mk
endif

packages:
	@test/tools/install-packages

# The whole way from a bare machine: what is missing, build, install.
define set_up
@test/tools/install-packages
@$(MAKE) -q all > /dev/null 2>&1 || echo "== Building (half a minute)"
@$(MAKE) --no-print-directory -j2 all > build.log 2>&1 || { cat build.log; rm -f build.log; exit 1; }
@rm -f build.log
@test/tools/install-extension
endef

demo:
	$(set_up)
	@demo/demo.sh

test:
	$(set_up)
	@$(MAKE) --no-print-directory check-symbols check-headers
	@$(MAKE) --no-print-directory check-pictures > /dev/null
	@test/tools/run-tests $(ONLY)

bench:
	$(set_up)
	@bench/bench.sh $(ONLY)

.PHONY: packages demo test bench check-symbols check-headers
