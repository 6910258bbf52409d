#include "taskq/detail/memory_bucket.hpp"

namespace taskq::detail {

using ratelimit::Algorithm;
using ratelimit::Outcome;

namespace {

Answer answer_of(const LimitDefinition& definition, const ratelimit::Decision& decision) noexcept {
  Answer answer{.decision = decision, .reason = decision.allowed ? Reason::ok : Reason::limited, .id = {}};
  cast_shadow(definition, answer);
  return answer;
}

// Holds the lock of a bucket while its whole state is at hand; gives back what the state is then, also after an exception.
template <class Pair>
class Held {
 public:
  Held(const LimitDefinition& definition, const Clock& clock, Pair& hot, std::atomic<Micros>& phase, Bucket& bucket) noexcept
      : hot_(hot), phase_(phase), bucket_(bucket), algorithm_(definition.limit.algorithm()) {
    const Words words = hot.lock();
    now_ = clock.now();
    ratelimit::State& state = bucket.state;
    if (algorithm_ != Algorithm::meter && algorithm_ != Algorithm::fixed_window) return;
    state.at = words.at;
    state.used = words.used & ~kFlags;
    state.tail = ratelimit::larger(state.tail, state.at);
    if (algorithm_ == Algorithm::fixed_window) {
      state.start = ratelimit::window_holding(state.at, phase.load(std::memory_order_relaxed), definition.limit.window);
    }
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  ~Held() {
    if (algorithm_ == Algorithm::fixed_window) phase_.store(bucket_.state.start, std::memory_order_relaxed);
    const bool short_way = algorithm_ == Algorithm::meter || algorithm_ == Algorithm::fixed_window;
    const std::int64_t used = short_way ? bucket_.state.used : 0;
    hot_.unlock({bucket_.state.at, bucket_.is_paused(now_) ? used | kPaused : used});
  }

  Micros now() const noexcept { return now_; }

 private:
  Pair& hot_;
  std::atomic<Micros>& phase_;
  Bucket& bucket_;
  Algorithm algorithm_;
  Micros now_ = 0;
};

}  // namespace

template <class Pair>
BasicMemoryBucket<Pair>::BasicMemoryBucket(const LimitDefinition& definition, const Clock& clock)
    : definition_(definition), clock_(clock), hot_(0, 0), phase_(0), rest_(definition.limit, clock.now()) {
  hot_.lock();
  phase_.store(rest_.state.start, std::memory_order_relaxed);
  hot_.unlock({rest_.state.at, 0});
}

template <class Pair>
Answer BasicMemoryBucket<Pair>::acquire(std::int64_t cost) {
  switch (definition_.limit.algorithm()) {
    case Algorithm::meter: return acquire_meter(cost);
    case Algorithm::fixed_window: return acquire_fixed(cost);
    default: return run({.op = Op::acquire, .cost = cost});
  }
}

// The clock is read after the words, so a state that is far ahead of it means that it was set back.
template <class Pair>
Answer BasicMemoryBucket<Pair>::acquire_meter(std::int64_t cost) {
  Words words = hot_.load();
  for (;;) {
    if ((words.used & kFlags) != 0) break;
    const Micros now = clock_.now();
    if (ratelimit::clock_was_set_back(words.at, now)) break;
    const Outcome o = ratelimit::meter::decide(definition_.limit, {.at = words.at, .used = words.used}, now, cost);
    if (!o.decision.allowed || hot_.exchange(words, {o.next.at, o.next.used})) return answer_of(definition_, o.decision);
  }
  return run({.op = Op::acquire, .cost = cost});
}

template <class Pair>
Answer BasicMemoryBucket<Pair>::acquire_fixed(std::int64_t cost) {
  const ratelimit::Limit& limit = definition_.limit;
  Words words = hot_.load();
  for (;;) {
    if ((words.used & kFlags) != 0) break;
    const Micros start = ratelimit::window_holding(words.at, phase_.load(std::memory_order_acquire), limit.window);
    const Micros now = clock_.now();
    if (ratelimit::clock_was_set_back(words.at, now)) break;
    const Outcome o = ratelimit::fixed_window::decide(limit, {.at = words.at, .start = start, .used = words.used}, now, cost);
    if (o.decision.allowed) {
      if (hot_.exchange(words, {o.next.at, o.next.used})) return answer_of(definition_, o.decision);
      continue;
    }
    // A reset may have come between the words and the phase.
    const Words again = hot_.load();
    if (again.at == words.at && again.used == words.used) return answer_of(definition_, o.decision);
    words = again;
  }
  return run({.op = Op::acquire, .cost = cost});
}

template <class Pair>
Answer BasicMemoryBucket<Pair>::run(const Request& request) {
  const Held<Pair> held(definition_, clock_, hot_, phase_, rest_);
  return rest_.run(definition_, request, held.now());
}

template class BasicMemoryBucket<HotPair<false>>;
#if defined(__x86_64__)
template class BasicMemoryBucket<HotPair<true>>;
#endif

}  // namespace taskq::detail
