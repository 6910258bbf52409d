// A sliding log kept in memory: the `Entries` that log.hpp asks for, and a bucket that stores what it decides.
// Single-threaded. Entries are never pruned, so that a test can see that old ones cost nothing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "taskq_ratelimit/log.hpp"

namespace taskq::ratelimit::test {

class MemoryEntries {
 public:
  struct Stored {
    log::Entry entry;
    std::uint64_t id = 0;
  };

  // REQUIRES: 0 < unit <= the last entry's upto.
  log::Entry reaching(std::int64_t unit) {
    ++probes_;
    const auto found = std::lower_bound(stored_.begin(), stored_.end(), unit,
                                        [](const Stored& s, std::int64_t wanted) { return s.entry.upto < wanted; });
    return found->entry;
  }

  std::uint64_t add(log::Entry entry) {
    stored_.push_back({entry, ++last_id_});
    return last_id_;
  }

  // The clock was set back: entries of the future become entries of now.
  void move_future_to(Micros now) {
    for (Stored& s : stored_) s.entry.at = smaller(s.entry.at, now);
  }

  // Takes `units` off the entry at `index` and numbers the later ones anew; an entry without units goes.
  void shrink(std::size_t index, std::int64_t units) {
    for (std::size_t i = index; i < stored_.size(); ++i) stored_[i].entry.upto -= units;
    stored_[index].entry.cost -= units;
    if (stored_[index].entry.cost == 0) stored_.erase(stored_.begin() + static_cast<std::ptrdiff_t>(index));
  }

  const std::vector<Stored>& all() const { return stored_; }
  int probes() const { return probes_; }
  void forget_probes() { probes_ = 0; }

 private:
  std::vector<Stored> stored_;
  std::uint64_t last_id_ = 0;
  int probes_ = 0;
};

class LogBucket {
 public:
  LogBucket(const Limit& limit, Micros now) : limit_(limit), state_(log::fresh(limit, now)) {}

  Decision acquire(Micros now, std::int64_t cost) {
    meet(now);
    const Outcome outcome = log::decide(limit_, state_, now, cost, entries_);
    if (outcome.decision.allowed) store(outcome.next, cost);
    return outcome.decision;
  }

  Decision preview(Micros now, std::int64_t cost) { return log::decide(limit_, state_, now, cost, entries_).decision; }

  Decision look(Micros now) { return log::describe(limit_, log::advance(limit_, state_, now, entries_), true, 0); }

  Decision charge(Micros now, std::int64_t cost) {
    meet(now);
    const Outcome outcome = log::charge(limit_, state_, now, cost, entries_);
    store(outcome.next, cost);
    return outcome.decision;
  }

  // Drops exactly that entry; nothing if it has left or is gone.
  void refund_entry(Micros now, std::uint64_t id) {
    settle_at(now);
    const auto& all = entries_.all();
    const auto found = std::find_if(all.begin(), all.end(), [&](const auto& s) { return s.id == id; });
    if (found == all.end() || found->entry.upto <= state_.previous) return;
    give_back(static_cast<std::size_t>(found - all.begin()), found->entry.cost);
  }

  void refund_newest(Micros now, std::int64_t units) {
    settle_at(now);
    while (units > 0 && log::live(state_) > 0) {
      const std::size_t newest = entries_.all().size() - 1;
      const std::int64_t part = smaller(units, entries_.all()[newest].entry.cost);
      give_back(newest, part);
      units -= part;
    }
  }

  void replace(const Limit& limit) { limit_ = limit; }

  std::uint64_t last_id() const { return entries_.all().back().id; }
  const Limit& limit() const { return limit_; }
  const State& state() const { return state_; }
  MemoryEntries& entries() { return entries_; }

 private:
  // Re-anchors a bucket whose clock was set back, whatever is decided after it.
  void meet(Micros now) {
    if (clock_was_set_back(state_.at, now)) settle_at(now);
  }

  void settle_at(Micros now) {
    if (clock_was_set_back(state_.at, now)) entries_.move_future_to(now);
    state_ = log::advance(limit_, state_, now, entries_);
  }

  void store(const State& next, std::int64_t cost) {
    state_ = next;
    entries_.add({state_.used, cost, state_.at});
  }

  void give_back(std::size_t index, std::int64_t units) {
    entries_.shrink(index, units);
    state_.used -= units;
    if (log::live(state_) == 0) return;
    const auto& all = entries_.all();
    const auto oldest =
        std::find_if(all.begin(), all.end(), [&](const auto& s) { return s.entry.upto > state_.previous; });
    state_.start = oldest->entry.at;
    state_.newest = all.back().entry.at;
  }

  Limit limit_;
  State state_;
  MemoryEntries entries_;
};

}  // namespace taskq::ratelimit::test
