// Slots, leases, fences.
#include <catch2/catch.hpp>
#include <future>
#include <thread>

#include "subject.hpp"
#include "taskq/errors.hpp"
#include "taskq/reservation.hpp"
#include "taskq/slot_keeper.hpp"

namespace taskq::test {

namespace {

ConcurrencyReservation slots(const Subject& s, int count, Duration lease = 30s) {
  return ConcurrencyReservation("slots", {.slots = count, .lease = lease}, s.backend);
}

// Until everybody who is to sleep on the clock does.
void wait_for_sleepers(const FakeClock& clock, int count) {
  while (clock.sleepers() < count) std::this_thread::yield();
}

}  // namespace

TEST_CASE("slots are taken from the lowest index and released by their worker") {
  on_every_backend([](Subject& s) {
    ConcurrencyReservation r = slots(s, 2);
    CHECK(r.acquire("job1", "worker1").index == 0);
    CHECK(r.acquire("job2", "worker2").index == 1);
    CHECK_THROWS_AS(r.acquire("job3", "worker3"), ReservationUnavailable);
    CHECK(r.try_acquire("job3", "worker3").retry_after == 30s);
    CHECK_FALSE(r.release(0, "worker2"));
    CHECK(r.release(0, "worker1"));
    CHECK(r.acquire("job3", "worker3").index == 0);
    CHECK(r.peek().held == 2);
    CHECK(r.peek().free == 0);
  });
}

TEST_CASE("a reservation's numbers are checked") {
  CHECK_THROWS_AS(ConcurrencyReservation("x", {.slots = 0, .lease = 1s}), InvalidArgument);
  CHECK_THROWS_AS(ConcurrencyReservation("x", {.slots = 1, .lease = 0s}), InvalidArgument);
  CHECK_THROWS_AS(ConcurrencyReservation("", {.slots = 1, .lease = 1s}), InvalidArgument);
}

TEST_CASE("B052: a late release after expiry touches nobody") {
  on_every_backend([](Subject& s) {
    ConcurrencyReservation r = slots(s, 1);
    const Slot a = r.acquire("job", "A");
    s.clock->advance(31s);
    const Slot b = r.acquire("job", "B");
    CHECK(b.fence > a.fence);
    CHECK_FALSE(r.release(a.index, "A", a.fence));
    CHECK_FALSE(r.try_acquire("job", "C").allowed);
    CHECK(r.release(b.index, "B", b.fence));
  });
}

TEST_CASE("B053: surplus releases free nothing more") {
  on_every_backend([](Subject& s) {
    ConcurrencyReservation r = slots(s, 2);
    const Slot a = r.acquire("job", "A");
    CHECK(r.release(a.index, "A"));
    CHECK_FALSE(r.release(a.index, "A"));
    CHECK_FALSE(r.release(a.index, "A"));
    CHECK(r.peek().free == 2);
    CHECK(r.try_acquire("job", "A").allowed);
    CHECK(r.try_acquire("job", "A").allowed);
    CHECK_FALSE(r.try_acquire("job", "A").allowed);
  });
}

TEST_CASE("B054: a lease is renewed by its holder before it ends, else it is lost") {
  on_every_backend([](Subject& s) {
    ConcurrencyReservation r = slots(s, 1, 20s);
    const Slot a = r.acquire("job", "A");
    s.clock->advance(19'999'999us);
    CHECK(r.renew(a.index, "A", a.fence).has_value());
    CHECK_FALSE(r.renew(a.index, "B").has_value());
    s.clock->advance(20s);
    CHECK_FALSE(r.renew(a.index, "A", a.fence).has_value());
    const Slot b = r.acquire("job", "B");
    CHECK_FALSE(r.renew(a.index, "A", a.fence).has_value());
    CHECK(r.peek().held == 1);
    CHECK(r.renew(b.index, "B", b.fence).has_value());
  });
}

TEST_CASE("B056: shrinking while slots are held") {
  on_every_backend([](Subject& s) {
    ConcurrencyReservation five = slots(s, 5), two = slots(s, 2);
    std::vector<Slot> held;
    for (int i = 0; i < 4; ++i) held.push_back(five.acquire("job", "W"));
    const SyncResult shrunk = sync_slots(std::span(&two, 1));
    CHECK(shrunk.inserted == 0);
    CHECK(shrunk.deleted == 1);
    CHECK(shrunk.skipped_held == 2);
    CHECK_FALSE(two.try_acquire("job", "W").allowed);
    two.release(3, "W");
    CHECK_FALSE(two.try_acquire("job", "W").allowed);
    two.release(2, "W");
    CHECK_FALSE(two.try_acquire("job", "W").allowed);
    two.release(0, "W");
    CHECK(two.acquire("job", "W").index == 0);
    CHECK(sync_slots(std::span(&five, 1)).inserted == 3);
    for (int i = 0; i < 3; ++i) CHECK(five.try_acquire("job", "W").allowed);
    CHECK_FALSE(five.try_acquire("job", "W").allowed);
  });
}

TEST_CASE("a guard releases its slot, once") {
  on_every_backend([](Subject& s) {
    ConcurrencyReservation r = slots(s, 1);
    {
      SlotGuard guard = r.hold("job", "A");
      SlotGuard moved = std::move(guard);
      CHECK_FALSE(r.try_acquire("job", "B").allowed);
    }
    SlotGuard guard = r.hold("job", "B");
    CHECK(guard.release());
    CHECK_FALSE(guard.release());
  });
}

TEST_CASE("keys of a reservation have slots of their own") {
  on_every_backend([](Subject& s) {
    ConcurrencyReservation r = slots(s, 1);
    CHECK(r.try_acquire("job", "A", "x").allowed);
    CHECK(r.try_acquire("job", "A", "y").allowed);
    CHECK_FALSE(r.try_acquire("job", "A", "x").allowed);
    CHECK(r.release(0, "A", 0, "x"));
  });
}

TEST_CASE("B058: two freed at once let two in", "[threads]") {
  ConcurrencyReservation r("slots", {.slots = 2, .lease = 30s});
  const Slot a = r.acquire("job", "A"), b = r.acquire("job", "B");
  auto first = std::async(std::launch::async, [&] { return r.wait("job", "C").allowed; });
  auto second = std::async(std::launch::async, [&] { return r.wait("job", "D").allowed; });
  r.release(a.index, "A", a.fence);
  r.release(b.index, "B", b.fence);
  CHECK(first.get());
  CHECK(second.get());
  CHECK(r.peek().held == 2);
}

TEST_CASE("waiting for a slot ends at its deadline, and when stopped") {
  const Subject s = memory_subject();
  s.clock->move_when_slept_on(true);
  ConcurrencyReservation r = slots(s, 1, 1h);
  r.acquire("job", "A");
  const Micros start = s.clock->now();
  CHECK_FALSE(r.wait("job", "B", 50ms).allowed);
  CHECK(s.clock->now() == start + 50'000);
  std::stop_source stop;
  stop.request_stop();
  CHECK_FALSE(r.wait("job", "B", kForever, stop.get_token()).allowed);
  CHECK_THROWS_AS(r.wait("job", "B", -1us), InvalidArgument);
}

TEST_CASE("a keeper renews slots, and tells when a lease is lost", "[threads]") {
  const Subject s = memory_subject();
  ConcurrencyReservation r = slots(s, 1, 30s);
  const Slot a = r.acquire("job", "A");
  std::promise<void> lost;
  SlotKeeper keeper;
  const auto kept = keeper.keep(r, a, [&] { lost.set_value(); });
  for (int i = 0; i < 10; ++i) {
    wait_for_sleepers(*s.clock, 1);
    s.clock->advance(10s);
  }
  wait_for_sleepers(*s.clock, 1);
  CHECK_FALSE(r.try_acquire("job", "B").allowed);
  CHECK_FALSE(kept.lost());
  r.release(a.index, "A", a.fence);
  s.clock->advance(10s);
  lost.get_future().wait();
  CHECK(kept.lost());
}

}  // namespace taskq::test
