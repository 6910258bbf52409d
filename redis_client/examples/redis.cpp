// One limit for all programs that use the same Redis. Give the server's URL.
#include <iostream>
#include <memory>

#include "taskq/ratelimit.hpp"
#include "taskq/redis.hpp"

int main(int, char** arguments) {
  const auto redis = std::make_shared<taskq::RedisBackend>(taskq::RedisOptions{.url = arguments[1]});
  taskq::TokenBucket here("stripe_api", {.capacity = 3, .refill_per_second = 0.01}, redis);
  taskq::TokenBucket there("stripe_api", {.capacity = 3, .refill_per_second = 0.01}, redis);  // in another program, say
  here.acquire();
  std::cout << "left for the other: " << static_cast<int>(there.acquire().remaining()) << '\n';
  const taskq::Decision last = here.acquire();
  std::cout << (there.acquire() ? "go" : "wait") << '\n';
  here.refund(last);  // it was not needed
  std::cout << (there.acquire() ? "go" : "wait") << '\n';
}
