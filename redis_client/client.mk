# The C++ client library. `make client` builds it, `make client-test` runs its tests (also under sanitizers), `make client-bench` measures.
CLIENT_OUT   ?= build/client
CLIENT_CMAKE  = cmake -S redis_client -Wno-dev $(if $(WERROR),-DTASKQ_WERROR=ON)

client:
	$(CLIENT_CMAKE) -B $(CLIENT_OUT) -DCMAKE_BUILD_TYPE=Release > /dev/null
	cmake --build $(CLIENT_OUT) -j2

client-test:
	$(CLIENT_CMAKE) -B $(CLIENT_OUT)-test -DCMAKE_BUILD_TYPE=Debug -DTASKQ_TESTS=ON > /dev/null
	cmake --build $(CLIENT_OUT)-test -j2
	$(CLIENT_OUT)-test/test/taskq_test

client-bench:
	$(CLIENT_CMAKE) -B $(CLIENT_OUT)-bench -DCMAKE_BUILD_TYPE=Release -DTASKQ_BENCH=ON > /dev/null
	cmake --build $(CLIENT_OUT)-bench -j2 > /dev/null
	$(CLIENT_OUT)-bench/bench/taskq_bench --benchmark_repetitions=5 --benchmark_report_aggregates_only=true

.PHONY: client client-test client-bench
