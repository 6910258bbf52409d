# The C++ client library. `make client` builds it, `make client-test` runs its tests, on a Redis server of their own where they need one;
# `make client-sanitized` runs them with the other compiler and under sanitizers, `make client-bench` measures.
CLIENT_OUT   ?= build/client
CLIENT_CMAKE  = cmake -S redis_client -Wno-dev $(if $(WERROR),-DTASKQ_WERROR=ON)

client:
	$(CLIENT_CMAKE) -B $(CLIENT_OUT) -DCMAKE_BUILD_TYPE=Release > /dev/null
	cmake --build $(CLIENT_OUT) -j2

client-test:
	$(CLIENT_CMAKE) -B $(CLIENT_OUT)-test -DCMAKE_BUILD_TYPE=Debug -DTASKQ_TESTS=ON -DTASKQ_REDIS=ON > /dev/null
	cmake --build $(CLIENT_OUT)-test -j2 > /dev/null
	ctest --test-dir $(CLIENT_OUT)-test --verbose

# With clang and the sanitizers for memory and behaviour all tests without a server; with the one for threads those that have some.
client-sanitized:
	$(CLIENT_CMAKE) -B $(CLIENT_OUT)-memory -DCMAKE_CXX_COMPILER=clang++-14 -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS=-O1 -DTASKQ_TESTS=ON \
	  -DTASKQ_SANITIZE=address,undefined > /dev/null
	cmake --build $(CLIENT_OUT)-memory -j2 --target taskq_test > /dev/null
	$(CLIENT_OUT)-memory/test/taskq_test
	$(CLIENT_CMAKE) -B $(CLIENT_OUT)-threads -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS=-O1 -DTASKQ_TESTS=ON -DTASKQ_SANITIZE=thread > /dev/null
	cmake --build $(CLIENT_OUT)-threads -j2 --target taskq_test > /dev/null
	$(CLIENT_OUT)-threads/test/taskq_test "[threads]"

client-bench:
	$(CLIENT_CMAKE) -B $(CLIENT_OUT)-bench -DCMAKE_BUILD_TYPE=Release -DTASKQ_BENCH=ON > /dev/null
	cmake --build $(CLIENT_OUT)-bench -j2 > /dev/null
	$(CLIENT_OUT)-bench/bench/taskq_bench --benchmark_repetitions=5 --benchmark_report_aggregates_only=true

.PHONY: client client-test client-sanitized client-bench
