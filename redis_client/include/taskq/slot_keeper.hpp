// Renews slots in the background while work goes on, and tells when a lease is lost.
//
//   SlotKeeper keeper;
//   auto held = reservation.hold(job, worker);
//   auto kept = keeper.keep(reservation, held.slot(), [&] { stop_the_work(); });
//
// Every slot is renewed when a third of its lease is over. A renewal that fails (BackendError, Timeout) is tried again until the lease has
// ended: then it is lost.
// Thread-safety: all functions, any thread. `on_lost` is called on the keeper's thread, once, and must not throw nor wait for the keeper.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "taskq/reservation.hpp"

namespace taskq {

class SlotKeeper {
 public:
  // Ends the renewals of one slot when it goes; after that `on_lost` is not called any more.
  class Kept {
   public:
    Kept(Kept&&) noexcept = default;
    Kept& operator=(Kept&&) = delete;
    ~Kept();
    bool lost() const;

   private:
    friend class SlotKeeper;
    struct State;
    explicit Kept(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}
    std::shared_ptr<State> state_;
  };

  SlotKeeper();
  ~SlotKeeper();
  SlotKeeper(const SlotKeeper&) = delete;
  SlotKeeper& operator=(const SlotKeeper&) = delete;

  [[nodiscard]] Kept keep(ConcurrencyReservation reservation, Slot slot, std::function<void()> on_lost, std::string key = {});

 private:
  struct Thread;
  std::unique_ptr<Thread> thread_;
};

}  // namespace taskq
