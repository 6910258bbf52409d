// Everything of the core and the memory backend. Thread-safety: see each header.
#pragma once

#include "taskq/backend.hpp"
#include "taskq/clock.hpp"
#include "taskq/decision.hpp"
#include "taskq/errors.hpp"
#include "taskq/fixed_window.hpp"
#include "taskq/keyed_ref.hpp"
#include "taskq/leaky_bucket.hpp"
#include "taskq/limiter.hpp"
#include "taskq/limiter_manager.hpp"
#include "taskq/memory_backend.hpp"
#include "taskq/registry.hpp"
#include "taskq/reservation.hpp"
#include "taskq/sliding_window.hpp"
#include "taskq/slot_keeper.hpp"
#include "taskq/token_bucket.hpp"
