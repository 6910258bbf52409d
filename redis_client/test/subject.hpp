// The backends that the contract tests run on. Each test gets a fresh one with a clock that it drives.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "taskq/memory_backend.hpp"

namespace taskq::test {

using namespace std::chrono_literals;

struct Subject {
  std::string name;
  std::shared_ptr<FakeClock> clock;
  std::shared_ptr<Backend> backend;
  std::function<Subject()> again;  // another fresh one
};

inline Subject memory_subject() {
  const auto clock = std::make_shared<FakeClock>();
  return {"memory", clock, std::make_shared<MemoryBackend>(clock), memory_subject};
}

// To run the contract on another backend, add it here.
inline std::vector<std::function<Subject()>> subjects() { return {memory_subject}; }

// Runs `body` once on every backend.
template <class Body>
void on_every_backend(Body&& body) {
  for (const auto& make : subjects()) {
    Subject subject = make();
    INFO("backend: " << subject.name);
    body(subject);
  }
}

}  // namespace taskq::test
