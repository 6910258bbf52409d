#include <iostream>

#include "taskq/ratelimit.hpp"

int main() {
  taskq::TokenBucket bucket("stripe_api", {.capacity = 3, .refill_per_second = 10});
  for (int call = 1; call <= 4; ++call) {
    if (const taskq::Decision d = bucket.acquire()) {
      std::cout << "call " << call << ": go, " << static_cast<int>(d.remaining()) << " left\n";
    } else {
      std::cout << "call " << call << ": wait " << (d.retry_after()->count() + 999) / 1000 << " ms\n";
    }
  }
}
