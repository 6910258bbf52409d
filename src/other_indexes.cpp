#include "other_indexes.hpp"

#include "pg.hpp"

namespace taskq::pg {

namespace {

// What index expressions and predicates are evaluated with.
struct Evaluation {
  EState* state;
  TupleTableSlot* slot;
};

Evaluation begin_evaluation(Relation table, HeapTuple tuple) {
  Evaluation e{.state = CreateExecutorState(), .slot = MakeSingleTupleTableSlot(RelationGetDescr(table), &TTSOpsHeapTuple)};
  ExecStoreHeapTuple(tuple, e.slot, false);
  GetPerTupleExprContext(e.state)->ecxt_scantuple = e.slot;
  return e;
}

void end_evaluation(const Evaluation& e) {
  ExecDropSingleTupleTableSlot(e.slot);
  FreeExecutorState(e.state);
}

bool belongs_into(const IndexInfo* index, const Evaluation& e) {
  return index->ii_Predicate == NIL || ExecQual(ExecPrepareQual(index->ii_Predicate, e.state), GetPerTupleExprContext(e.state));
}

void insert_into(Relation index, Relation table, HeapTuple tuple, const Evaluation& e) {
  IndexInfo* info = BuildIndexInfo(index);
  if (!info->ii_ReadyForInserts || !belongs_into(info, e)) return;
  Datum values[INDEX_MAX_KEYS];
  bool nulls[INDEX_MAX_KEYS];
  FormIndexDatum(info, e.slot, e.state, values, nulls);
  index_insert(index, values, nulls, &tuple->t_self, table, info->ii_Unique ? UNIQUE_CHECK_YES : UNIQUE_CHECK_NO, false, info);
}

void insert_into_all(const OpenTable& open, const List* indexes, HeapTuple tuple) {
  const Evaluation e = begin_evaluation(open.table, tuple);
  for (int i = 0; i < list_length(indexes); ++i) {
    const Oid oid = list_nth_oid(indexes, i);
    if (oid == open.key_oid) continue;
    Relation index = index_open(oid, RowExclusiveLock);
    insert_into(index, open.table, tuple, e);
    index_close(index, NoLock);
  }
  end_evaluation(e);
}

}  // namespace

void add_to_other_indexes(const OpenTable& open, HeapTuple tuple) {
  List* indexes = RelationGetIndexList(open.table);
  if (list_length(indexes) > 1) insert_into_all(open, indexes, tuple);
  list_free(indexes);
}

}  // namespace taskq::pg
