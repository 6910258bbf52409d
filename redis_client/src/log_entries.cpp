#include "taskq/detail/log_entries.hpp"

#include <algorithm>

namespace taskq::detail {

ratelimit::log::Entry LogEntries::reaching(std::int64_t unit) const noexcept {
  return std::lower_bound(stored_.begin(), stored_.end(), unit,
                          [](const Stored& s, std::int64_t wanted) { return s.entry.upto < wanted; })
      ->entry;
}

void LogEntries::drop_left(std::int64_t previous) noexcept {
  for (int i = 0; i < 4 && !stored_.empty() && stored_.front().entry.upto <= previous; ++i) stored_.pop_front();
}

void LogEntries::move_future_to(Micros now) noexcept {
  for (Stored& s : stored_) s.entry.at = ratelimit::smaller(s.entry.at, now);
}

// Later units are numbered anew: no gap, so that the unit that must leave is found by its number.
void LogEntries::shrink(std::size_t index, std::int64_t units) {
  for (std::size_t i = index; i < stored_.size(); ++i) stored_[i].entry.upto -= units;
  stored_[index].entry.cost -= units;
  if (stored_[index].entry.cost == 0) stored_.erase(stored_.begin() + static_cast<std::ptrdiff_t>(index));
}

std::int64_t LogEntries::take_from(RequestId id, std::int64_t units, std::int64_t previous) {
  for (std::size_t i = stored_.size(); i-- > 0 && stored_[i].entry.upto > previous;) {
    if (stored_[i].id != id) continue;
    const std::int64_t taken = ratelimit::smaller(units, stored_[i].entry.cost);
    if (taken > 0) shrink(i, taken);
    return taken;
  }
  return 0;
}

std::int64_t LogEntries::take_newest(std::int64_t units, std::int64_t previous) {
  std::int64_t taken = 0;
  while (taken < units && !stored_.empty() && stored_.back().entry.upto > previous) {
    const std::int64_t part = ratelimit::smaller(units - taken, stored_.back().entry.cost);
    shrink(stored_.size() - 1, part);
    taken += part;
  }
  return taken;
}

}  // namespace taskq::detail
