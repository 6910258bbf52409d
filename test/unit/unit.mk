# Unit tests of the core. `make unitcheck` builds and runs them; `make unitcheck-sanitized` does so under
# AddressSanitizer and UndefinedBehaviorSanitizer. TASKQ_TEST_SEED repeats a run.
UNIT_OUT      ?= build/unit
UNIT_SOURCES   = $(sort $(wildcard test/unit/*.cpp))
UNIT_CXXFLAGS  = -std=c++20 -O1 -g -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Iinclude -MMD -MP $(WERROR) \
                 -DTEST_VECTORS_DIR='"$(CURDIR)/test/vectors"'
# GCC warns of uninitialized members of <regex> under sanitizers, wrongly.
UNIT_SANITIZE  = -fsanitize=address,undefined -fno-sanitize-recover=all -Wno-maybe-uninitialized

unit_objects   = $(patsubst test/unit/%.cpp,$(1)/%.o,$(UNIT_SOURCES))

unitcheck: $(UNIT_OUT)/unit
	$(UNIT_OUT)/unit

unitcheck-sanitized: $(UNIT_OUT)-sanitized/unit
	$(UNIT_OUT)-sanitized/unit

$(UNIT_OUT)/%.o: test/unit/%.cpp | $(UNIT_OUT)
	$(CXX) $(UNIT_CXXFLAGS) -c $< -o $@

$(UNIT_OUT)-sanitized/%.o: test/unit/%.cpp | $(UNIT_OUT)-sanitized
	$(CXX) $(UNIT_CXXFLAGS) $(UNIT_SANITIZE) -c $< -o $@

$(UNIT_OUT)/unit: $(call unit_objects,$(UNIT_OUT))
	$(CXX) $^ -o $@

$(UNIT_OUT)-sanitized/unit: $(call unit_objects,$(UNIT_OUT)-sanitized)
	$(CXX) $(UNIT_SANITIZE) $^ -o $@

$(UNIT_OUT) $(UNIT_OUT)-sanitized:
	mkdir -p $@

-include $(wildcard $(UNIT_OUT)/*.d $(UNIT_OUT)-sanitized/*.d)

.PHONY: unitcheck unitcheck-sanitized
