// The entries of one sliding log, oldest first. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "taskq/request_id.hpp"
#include "taskq_ratelimit/log.hpp"

namespace taskq::detail {

class LogEntries {
  using Micros = ratelimit::Micros;

 public:
  // The entry that holds this unit. REQUIRES: it has not been dropped, and unit <= the last entry's upto.
  ratelimit::log::Entry reaching(std::int64_t unit) const noexcept;

  void add(ratelimit::log::Entry entry, RequestId id) { stored_.push_back({entry, id}); }

  // Forgets entries that have left, a few at a time: calls add one each.
  void drop_left(std::int64_t previous) noexcept;
  void clear() noexcept { stored_.clear(); }

  // The clock was set back: entries of the future become entries of now.
  void move_future_to(Micros now) noexcept;

  // Takes up to `units` off the entry with this id, if its units are numbered above `previous`. Answers how many.
  std::int64_t take_from(RequestId id, std::int64_t units, std::int64_t previous);

  // Takes up to `units` off the newest entries above `previous`. Answers how many.
  std::int64_t take_newest(std::int64_t units, std::int64_t previous);

  // Times of the oldest entry above `previous` and of the newest. REQUIRES: there is one.
  Micros oldest_at(std::int64_t previous) const noexcept { return reaching(previous + 1).at; }
  Micros newest_at() const noexcept { return stored_.back().entry.at; }

  std::size_t size() const noexcept { return stored_.size(); }

 private:
  struct Stored {
    ratelimit::log::Entry entry;
    RequestId id;
  };

  void shrink(std::size_t index, std::int64_t units);

  std::deque<Stored> stored_;
};

}  // namespace taskq::detail
