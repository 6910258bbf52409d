// Where limits live. A backend makes "read, decide, write" atomic and speaks in plain integers of the core: costs in units, times in
// microseconds. Limiters turn what a user writes into these requests and the answers into Decisions, so a backend checks nothing but
// what its store can refuse.
//
// To add a backend: implement store(), run() and run_slot(). Override run_many() and acquire_all() where the store can do several in one
// round trip. Failures are thrown as BackendError or Timeout; a wrapper that falls back to another backend wraps run() alone.
// Thread-safety: all functions may be called from any number of threads.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "taskq/clock.hpp"
#include "taskq/decision.hpp"
#include "taskq/definition.hpp"

namespace taskq {

namespace detail {
class KeyTable;
class MemoryBucket;
}

enum class Op : std::uint8_t {
  acquire,    // take `cost` or nothing
  preview,    // what acquire would answer
  peek,       // what is left; retry_after is for `cost`
  reserve,    // take `cost`, or a place in the queue of time not later than `max_wait`; meters only
  charge,     // debit `cost` without asking
  refund,     // give back `cost`, clamped at full
  give_back,  // give back what the decision `taken`, `id` took; once
  settle,     // replace the cost of `taken` by `cost`; once
  reset,      // as if nobody had ever called
  pause       // deny everything until `until`; an instant that is past ends a pause
};

struct Request {
  Op op = Op::acquire;
  const LimitDefinition* limit = nullptr;
  std::string_view key{};          // empty: the limit is not keyed
  std::int64_t cost = 1;         // units
  Micros max_wait = 0;
  Micros until = 0;              // since the Unix epoch
  ratelimit::Taken taken{};
  RequestId id{};                  // give_back, settle: the entry of a sliding log
};

struct ReservationDefinition {
  std::string name;
  int slots = 0;
  Micros lease = 0;
  bool operator==(const ReservationDefinition&) const = default;
};

// Throws InvalidArgument unless slots >= 1 and lease > 0.
ReservationDefinition define_reservation(std::string name, int slots, Duration lease, bool reserved_prefix = false);

enum class SlotOp : std::uint8_t { acquire, release, renew, peek, sync };

struct SlotRequest {
  SlotOp op = SlotOp::acquire;
  const ReservationDefinition* reservation = nullptr;
  std::string_view key{};
  std::string_view job_id{};      // texts; backends whose columns are uuids refuse others
  std::string_view worker_id{};   // empty: nobody in particular; release and renew then need the fence
  int slot_index = -1;
  std::int64_t fence = 0;       // 0: not given
};

struct SlotAnswer {
  bool done = false;            // acquire: a slot was taken; release, renew: it was held by this worker and with this fence
  int slot_index = -1;
  std::int64_t fence = 0;
  Micros expires_at = 0;        // since the Unix epoch
  Micros retry_after = 0;       // acquire denied: until the first lease ends
  int held = 0;                 // peek
  int inserted = 0, deleted = 0, skipped_held = 0;  // sync
};

// One of several things that are taken together: a rate limit (request.op == acquire) or a slot.
struct GroupItem {
  const Request* limit = nullptr;      // exactly one of the two
  const SlotRequest* slot = nullptr;
};

struct GroupAnswer {
  bool allowed = false;
  int refused_by = -1;          // the first item, in the caller's order, that refused
  Micros retry_after = 0;       // the longest of all that refused; kNever if one of them can never
  std::vector<Answer> limits;   // in the order of the items that are limits; complete if allowed
  std::vector<SlotAnswer> slots;
};

class Backend {
 public:
  virtual ~Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  virtual Store store() const noexcept = 0;

  // What wait() sleeps by.
  virtual const Clock& clock() const noexcept;

  virtual Answer run(const Request& request) = 0;
  virtual SlotAnswer run_slot(const SlotRequest& request) = 0;

  // Independent requests, answers in the same order. Default: one after the other.
  virtual std::vector<Answer> run_many(std::span<const Request> requests);

  // All or nothing. Default: one after the other; if one refuses or throws, what was taken is given back in reverse order.
  virtual GroupAnswer acquire_all(std::span<const GroupItem> items);

  // The memory backend's bucket of a limit that is not keyed, for calls without a virtual function; others have none.
  virtual std::shared_ptr<detail::MemoryBucket> direct(const LimitDefinition& limit);

  // The same for the keys of a limit that is keyed. max_keys 0: no bound; whoever asks first for a limit sets it.
  virtual std::shared_ptr<detail::KeyTable> direct_keys(const LimitDefinition& limit, std::size_t max_keys);

  // A reservation's key is not used any more: what is kept for it here may go if no slot is held. True if it did.
  virtual bool forget_slots(const ReservationDefinition& reservation, std::string_view key);

 protected:
  Backend() = default;
};

}  // namespace taskq
