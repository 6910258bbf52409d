# The pictures of docs/algorithms.md. `pictures` draws them, `check-pictures` fails if the committed ones are out of date.
# Run from the top of the tree, alone or included from its Makefile.

PICTURES_DIR  = docs/pictures
PICTURES_OUT  = build/pictures
PICTURES_DEPS = $(wildcard $(PICTURES_DIR)/*.hpp include/taskq_ratelimit/*.hpp)

pictures: $(PICTURES_OUT)/draw
	$(PICTURES_OUT)/draw $(PICTURES_DIR)

check-pictures: $(PICTURES_OUT)/draw
	@mkdir -p $(PICTURES_OUT)/svg && rm -f $(PICTURES_OUT)/svg/*.svg
	@$(PICTURES_OUT)/draw $(PICTURES_OUT)/svg
	@for picture in $(PICTURES_OUT)/svg/*.svg; do \
	  diff -u $(PICTURES_DIR)/$${picture##*/} $$picture || exit 1; \
	done
	@echo "pictures are up to date"

$(PICTURES_OUT)/draw: $(PICTURES_DIR)/draw.cpp $(PICTURES_DEPS)
	@mkdir -p $(PICTURES_OUT)
	$(CXX) -std=c++20 -O1 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Iinclude -o $@ $<

.PHONY: pictures check-pictures
