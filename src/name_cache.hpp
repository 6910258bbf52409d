// A table of definitions, cached per backend by name and emptied whenever one of the extension's tables changes.
#pragma once

#include <cstring>
#include <string_view>

#include "relations.hpp"
#include "table_row.hpp"

#include "pg.hpp"

namespace taskq::pg {

// Entry is trivially copyable and begins with its name, char name[N], zero-terminated.
template <class Entry>
struct NameCache {
  const char* title;
  Oid Relations::*table;
  Oid Relations::*by_name;                      // its unique index on the name
  void (*fill)(Entry& entry, const TableRow&);  // everything but the name
  HTAB* entries = nullptr;
  uint64 generation = 0;  // of all caches, when it was filled

  // The entry as committed now (or changed by this transaction), or nullptr. Valid until the next call into the server.
  const Entry* find(std::string_view name) {
    relations();
    renew();
    Entry loaded{};
    if (name.size() >= sizeof(loaded.name)) return nullptr;
    std::memcpy(loaded.name, name.data(), name.size());
    auto* cached = static_cast<Entry*>(hash_search(entries, loaded.name, HASH_FIND, nullptr));
    if (cached != nullptr) return cached;
    if (!load(name, loaded)) return nullptr;
    renew();  // reading may have taken in more changes; what was read is at least as new
    cached = static_cast<Entry*>(hash_search(entries, loaded.name, HASH_ENTER, nullptr));
    *cached = loaded;
    return cached;
  }

  // Makes the next look-up of every name read the table.
  void forget() { generation = 0; }

 private:
  bool load(std::string_view name, Entry& entry) {
    const Relations& ours = relations();
    Relation heap = table_open(ours.*table, AccessShareLock);
    Relation index = index_open(ours.*by_name, AccessShareLock);
    ScanKeyData key;
    ScanKeyEntryInitialize(&key, 0, 1, BTEqualStrategyNumber, InvalidOid, C_COLLATION_OID, F_TEXTEQ,
                           PointerGetDatum(cstring_to_text_with_len(name.data(), static_cast<int>(name.size()))));
    const bool found = with_row(heap, index, &key, 1, [&](TableRow row) { fill(entry, row); });
    index_close(index, AccessShareLock);
    table_close(heap, AccessShareLock);
    return found;
  }

  void renew() {
    if (entries != nullptr && generation == cache_generation) return;
    if (entries != nullptr) hash_destroy(entries);
    HASHCTL control{};
    control.keysize = sizeof(Entry::name);
    control.entrysize = sizeof(Entry);
    control.hcxt = CacheMemoryContext;
    entries = hash_create(title, 64, &control, HASH_ELEM | HASH_STRINGS | HASH_CONTEXT);
    generation = cache_generation;
  }
};

}  // namespace taskq::pg
