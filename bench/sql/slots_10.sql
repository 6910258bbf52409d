SELECT slot_index, fence FROM taskq.acquire_slot('slots_10', NULL, NULL) \gset
SELECT taskq.release_slot('slots_10', :slot_index, fence => :fence);
