#include "taskq/slot_keeper.hpp"

#include <condition_variable>
#include <list>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

#include "taskq/errors.hpp"

namespace taskq {

struct SlotKeeper::Kept::State {
  State(ConcurrencyReservation r, Slot taken, std::string of_key, std::function<void()> when_lost)
      : reservation(std::move(r)), slot(taken), key(std::move(of_key)), on_lost(std::move(when_lost)) {}

  ConcurrencyReservation reservation;
  Slot slot;
  std::string key;
  std::function<void()> on_lost;
  std::mutex mutex;  // held while on_lost is called, so that whoever lets go knows that it is over
  bool let_go = false;
  bool lost = false;

  Micros now() const { return reservation.backend()->clock().now(); }
  Micros due() const { return slot.expires_at.time_since_epoch().count() - reservation.lease().count() * 2 / 3; }

  void lose() {
    lost = true;
    if (on_lost) on_lost();
  }

  // Keeps the slot if it is due. False if there is nothing left to do.
  bool beat() {
    const std::lock_guard lock(mutex);
    if (let_go || lost) return false;
    if (now() < due()) return true;
    try {
      const auto end = reservation.renew(slot.index, {}, slot.fence, key);
      if (end) slot.expires_at = *end;
      else lose();
    } catch (const Error&) {
      if (now() >= slot.expires_at.time_since_epoch().count()) lose();
    }
    return !lost;
  }
};

SlotKeeper::Kept::~Kept() {
  if (!state_) return;
  const std::lock_guard lock(state_->mutex);
  state_->let_go = true;
}

bool SlotKeeper::Kept::lost() const {
  const std::lock_guard lock(state_->mutex);
  return state_->lost;
}

struct SlotKeeper::Thread {
  std::mutex mutex;
  std::list<std::shared_ptr<Kept::State>> kept;
  std::stop_source wake;  // ends the present sleep: there is something new
  std::condition_variable_any came;
  std::jthread thread;

  // One walk over all slots; answers how long nothing is due, and by which clock.
  std::pair<Micros, std::shared_ptr<Backend>> beat_all() {
    std::unique_lock lock(mutex);
    const std::list<std::shared_ptr<Kept::State>> all = kept;
    lock.unlock();
    Micros next = ratelimit::kNever;
    std::shared_ptr<Backend> by;
    for (const auto& state : all) {
      if (!state->beat()) {
        lock.lock();
        kept.remove(state);
        lock.unlock();
        continue;
      }
      // A failed renewal is due again at once: try again after a tenth of what is left of the lease's third.
      const Micros wait = ratelimit::larger(state->due() - state->now(), state->reservation.lease().count() / 30 + 1);
      if (wait < next) by = state->reservation.backend();
      next = ratelimit::smaller(next, wait);
    }
    return {next, by};
  }

  void run(const std::stop_token& stop) {
    const std::stop_callback end(stop, [this] {
      const std::lock_guard lock(mutex);
      wake.request_stop();
    });
    while (!stop.stop_requested()) {
      std::stop_token present;
      {
        std::unique_lock lock(mutex);
        came.wait(lock, stop, [this] { return !kept.empty(); });
        if (wake.stop_requested()) wake = std::stop_source{};
        present = wake.get_token();
      }
      if (stop.stop_requested()) return;
      const auto [nap, by] = beat_all();
      if (by) by->clock().sleep(Duration{nap}, present);
    }
  }
};

SlotKeeper::SlotKeeper() : thread_(std::make_unique<Thread>()) {
  thread_->thread = std::jthread([t = thread_.get()](const std::stop_token& stop) { t->run(stop); });
}

SlotKeeper::~SlotKeeper() {
  thread_->thread.request_stop();
  thread_->thread.join();
}

SlotKeeper::Kept SlotKeeper::keep(ConcurrencyReservation reservation, Slot slot, std::function<void()> on_lost, std::string key) {
  auto state = std::make_shared<Kept::State>(std::move(reservation), slot, std::move(key), std::move(on_lost));
  std::stop_source wake;
  {
    const std::lock_guard lock(thread_->mutex);
    thread_->kept.push_back(state);
    wake = thread_->wake;
  }
  wake.request_stop();
  thread_->came.notify_all();
  return Kept(std::move(state));
}

}  // namespace taskq
