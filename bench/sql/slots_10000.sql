SELECT slot_index, fence FROM taskq.acquire_slot('slots_10000', NULL, NULL) \gset
SELECT taskq.release_slot('slots_10000', :slot_index, fence => :fence);
