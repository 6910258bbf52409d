// What the library throws. A denial is no error: it is a Decision. Destructors never throw.
//
//   Error
//   ├── InvalidArgument          a definition, a cost, a name, a key that can never be right (also: another definition under a name)
//   ├── NotFound                 no limit or reservation of this name
//   ├── ReservationUnavailable   acquire_for_actor or ConcurrencyReservation::acquire was denied; come back after retry_after
//   ├── Cancelled                the caller asked to stop; what had been taken was given back
//   ├── PayloadValidationError   a payload does not describe what a keyed reference needs; trying again does not help
//   ├── BackendError             the store answered with an error, or not understandably
//   ├── ConnectionError          the store cannot be reached, or hung up; then it is not known whether the call took effect
//   └── Timeout                  the store did not answer in time: whether the call took effect is not known
#pragma once

#include <chrono>
#include <stdexcept>
#include <string>

namespace taskq {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class InvalidArgument : public Error {
 public:
  using Error::Error;
};

class NotFound : public Error {
 public:
  using Error::Error;
};

class Cancelled : public Error {
 public:
  using Error::Error;
};

class PayloadValidationError : public Error {
 public:
  using Error::Error;
};

class BackendError : public Error {
 public:
  using Error::Error;
};

class ConnectionError : public BackendError {
 public:
  using BackendError::BackendError;
};

class Timeout : public BackendError {
 public:
  using BackendError::BackendError;
};

// What is waited for where nothing says how long.
inline constexpr std::chrono::microseconds kDefaultReservationBackoff = std::chrono::seconds{5};

class ReservationUnavailable : public Error {
 public:
  ReservationUnavailable(std::string name, std::chrono::microseconds retry_after);

  const std::string& name() const noexcept { return name_; }
  std::chrono::microseconds retry_after() const noexcept { return retry_after_; }

 private:
  std::string name_;
  std::chrono::microseconds retry_after_;
};

}  // namespace taskq
