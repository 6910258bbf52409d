// A hash of keys, which may come from an attacker: seeded afresh in every process, so that nobody can prepare keys that collide.
// Multiplies and folds 8 bytes at a time. Thread-safety: pure but for the seed.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include "taskq_ratelimit/micros.hpp"

namespace taskq::detail {

std::uint64_t process_seed() noexcept;

inline std::uint64_t folded(std::uint64_t a, std::uint64_t b) noexcept {
  const ratelimit::UnsignedWide product = static_cast<ratelimit::UnsignedWide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

inline std::uint64_t load8(const char* at) noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

inline std::uint64_t load4(const char* at) noexcept {
  std::uint32_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

// 0 to 7 bytes, without a loop; all of them count.
inline std::uint64_t load_few(const char* at, std::size_t size) noexcept {
  if (size >= 4) return load4(at) << 32 | load4(at + size - 4);
  if (size == 0) return 0;
  const auto byte = [at](std::size_t i) { return static_cast<std::uint64_t>(static_cast<unsigned char>(at[i])); };
  return byte(0) << 16 | byte(size / 2) << 8 | byte(size - 1);
}

inline std::uint64_t hash(std::string_view text, std::uint64_t seed) noexcept {
  constexpr std::uint64_t odd = 0xa0761d6478bd642fu, more = 0xe7037ed1a0b428dbu;
  std::uint64_t h = seed ^ (text.size() * odd);
  const char* at = text.data();
  std::size_t left = text.size();
  for (; left > 16; left -= 16, at += 16) h = folded(load8(at) ^ more, load8(at + 8) ^ h);
  const std::uint64_t first = left >= 8 ? load8(at) : load_few(at, left);
  const std::uint64_t last = left > 8 ? load8(at + left - 8) : 0;
  return folded(odd ^ seed, folded(first ^ more, last ^ h));
}

}  // namespace taskq::detail
