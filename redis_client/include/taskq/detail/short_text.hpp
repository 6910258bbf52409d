// A text in 16 bytes: up to 15 bytes lie inside, longer ones on the heap. Not thread-safe.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

namespace taskq::detail {

class ShortText {
 public:
  ShortText() noexcept = default;
  explicit ShortText(std::string_view text) {
    if (text.size() <= kInside) {
      std::memcpy(bytes_, text.data(), text.size());
      bytes_[kInside] = static_cast<char>(text.size());
      return;
    }
    const auto size = static_cast<std::uint32_t>(text.size());
    char* heap = new char[size];
    std::memcpy(heap, text.data(), size);
    std::memcpy(bytes_, &heap, sizeof heap);
    std::memcpy(bytes_ + sizeof heap, &size, sizeof size);
    bytes_[kInside] = kOutside;
  }
  ShortText(ShortText&& other) noexcept { swap(other); }
  ShortText& operator=(ShortText&& other) noexcept {
    swap(other);
    return *this;
  }
  ~ShortText() {
    if (bytes_[kInside] == kOutside) delete[] outside();
  }

  std::string_view view() const noexcept {
    if (bytes_[kInside] != kOutside) return {bytes_, static_cast<std::size_t>(bytes_[kInside])};
    std::uint32_t size = 0;
    std::memcpy(&size, bytes_ + sizeof(char*), sizeof size);
    return {outside(), size};
  }

 private:
  static constexpr std::size_t kInside = 15;
  static constexpr char kOutside = 16;

  char* outside() const noexcept {
    char* heap = nullptr;
    std::memcpy(&heap, bytes_, sizeof heap);
    return heap;
  }
  void swap(ShortText& other) noexcept { std::swap(bytes_, other.bytes_); }

  char bytes_[16] = {};
};

}  // namespace taskq::detail
