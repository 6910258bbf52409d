// The test program's entry, and the one place that prints the seed.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#include <iostream>

#include "random.hpp"

namespace {

struct SeedPrinter : Catch::TestEventListenerBase {
  using TestEventListenerBase::TestEventListenerBase;
  void testRunStarting(const Catch::TestRunInfo&) override {
    std::cout << "seed: " << taskq::ratelimit::test::seed() << " (repeat with TASKQ_TEST_SEED)" << std::endl;
  }
};

}  // namespace

CATCH_REGISTER_LISTENER(SeedPrinter)
