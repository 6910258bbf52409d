// Large arrays on huge pages, where the system has them: a table that is read here and there then needs no walk through page tables.
#pragma once

#include <cstddef>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace taskq::detail {

inline constexpr std::size_t kHugePage = std::size_t{2} << 20;

template <class T>
struct HugeAllocator {
  using value_type = T;

  HugeAllocator() noexcept = default;
  template <class U>
  HugeAllocator(const HugeAllocator<U>&) noexcept {}

  static constexpr std::align_val_t alignment(std::size_t bytes) noexcept {
    return std::align_val_t{bytes >= kHugePage ? kHugePage : alignof(T)};
  }

  T* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    void* memory = ::operator new(bytes, alignment(bytes));
#if defined(__linux__)
    if (bytes >= kHugePage) madvise(memory, bytes, MADV_HUGEPAGE);  // an advice: what it answers does not matter
#endif
    return static_cast<T*>(memory);
  }

  void deallocate(T* memory, std::size_t count) noexcept {
    const std::size_t bytes = count * sizeof(T);
    ::operator delete(memory, alignment(bytes));
  }

  bool operator==(const HugeAllocator&) const noexcept = default;
};

}  // namespace taskq::detail
