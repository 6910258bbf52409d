// The rows of taskq.reservation_slots, read and written through the access methods.
//
// Locking protocol
// (1) A slot's truth is the newest version of its row that is committed or our own, whatever the isolation level. A slot without
//     a row is free: it was never used.
// (2) Who wants to take a slot reads that version, reads the clock, and replaces exactly that version if its lease has ended
//     (heap_update refuses if anybody else replaced it first). So two leases of one slot never overlap, and each has a fence above the last.
// (3) A row that an open transaction has in hand is skipped, never waited for; a refused replacement goes on to another slot.
//     Only the holder of a slot, releasing or renewing it, waits for who has its row in hand.
// (4) "Full" is answered only after two looks at all slots that saw the same holder in each: then all were held at one instant
//     between the two.
// (5) Slots above the configured number are marked surplus or deleted by who changes the number: nobody can replace such a version any
//     more. While leases of surplus slots live, all leases count against the number, under the lock of (6). Whoever took a slot
//     looks afterwards whether there is surplus, and if so gives it back and counts. Who changes the number lets go of what it has
//     changed, and of the lock, before it waits for long, as in rule (5) of group.hpp.
// (6) The lock of a reservation (slot_lock.hpp): exclusively by who changes its definition, until the end of the transaction, and by
//     who counts; shared by who makes a row. So a row is only ever made, and leases are only ever counted, under the
//     definition that is in force.
// (7) Rows of a key may be deleted by who needs room for another key (slot_cap.hpp): only free ones, never waiting, under the shared lock
//     of (6). A slot whose row is gone is free as one that never had a row.
// (8) A sweep deletes versions whose leases have ended, and only those: see slot_sweep.hpp. "Full" waits for it, and for (7).
// (9) Whoever runs this holds a snapshot, for the reason given in bucket_store.hpp.
#pragma once

#include <string_view>

#include "relations.hpp"
#include "row_chain.hpp"
#include "slot_row.hpp"

#include "pg.hpp"

namespace taskq::pg {

struct SlotName {
  int32 reservation_id = 0;
  std::string_view key;
};

// Finds the newest version of one slot's row. `to_change` also cleans its page of dead versions first, if the page is nearly full.
FoundRow find_slot(OpenTable& slots, SlotName name, int32 index, bool to_change);

// Replaces the version `found`. False if it is no longer the newest or is locked.
bool replace_slot(OpenTable& slots, const FoundRow& found, const SlotRow& changed);

// Inserts the first version. False if there is one already, or somebody else is doing the same.
bool insert_slot(OpenTable& slots, std::string_view key, const SlotRow& row);

// Deletes the version `found`. False if it is no longer the newest or is locked.
bool delete_slot(OpenTable& slots, const FoundRow& found);

// True if there are surplus slots under this key. REQUIRES: surplus slots have the highest numbers, as rule (5) makes them.
bool has_surplus(OpenTable& slots, SlotName name);

// A scan of the primary key: all slots under a key, or all of a reservation.
struct SlotScan {
  IndexScanDesc scan;
  SlotName name;
  bool any_key;
};
SlotScan begin_slot_scan(OpenTable& slots, SlotName name);
SlotScan begin_reservation_scan(OpenTable& slots, int32 reservation_id);
void end_slot_scan(const SlotScan& scan);

// The next row that has a version which exists or is arriving, by key and number; a row may come twice. False at the end.
bool next_slot(const SlotScan& scan, OpenTable& slots, ScanDirection direction, FoundRow& found);

int64 next_fence();

}  // namespace taskq::pg
