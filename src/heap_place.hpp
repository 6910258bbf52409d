// Reading one tuple at its place on a page.
#pragma once

#include "pg.hpp"

namespace taskq::pg {

inline ItemPointerData place_of(BlockNumber block, OffsetNumber offset) {
  ItemPointerData place;
  place.ip_blkid.bi_hi = static_cast<uint16>(block >> 16);
  place.ip_blkid.bi_lo = static_cast<uint16>(block & 0xffff);
  place.ip_posid = offset;
  return place;
}

// Points `tuple` at the line pointer `place`, following one redirection. False if nothing is there.
// REQUIRES: the buffer holds that block, pinned and at least share-locked.
inline bool tuple_at(Relation table, Buffer buffer, ItemPointerData place, HeapTupleData& tuple) {
  Page page = BufferGetPage(buffer);
  OffsetNumber offset = place.ip_posid;
  if (offset < FirstOffsetNumber || offset > PageGetMaxOffsetNumber(page)) return false;
  ItemId item = PageGetItemId(page, offset);
  if (ItemIdIsRedirected(item)) {
    offset = static_cast<OffsetNumber>(ItemIdGetRedirect(item));
    item = PageGetItemId(page, offset);
  }
  if (!ItemIdIsNormal(item)) return false;
  tuple.t_data = reinterpret_cast<HeapTupleHeader>(PageGetItem(page, item));
  tuple.t_len = ItemIdGetLength(item);
  tuple.t_tableOid = RelationGetRelid(table);
  tuple.t_self = place_of(BufferGetBlockNumber(buffer), offset);
  return true;
}

}  // namespace taskq::pg
