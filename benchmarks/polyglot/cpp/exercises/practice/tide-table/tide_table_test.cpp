#include "tide_table.h"

#include "test/catch.hpp"

#include <cstddef>
#include <vector>

using positions = std::vector<std::size_t>;

TEST_CASE("nothing written down") {
    REQUIRE(tide_table::highs({}) == positions{});
    REQUIRE(tide_table::lows({}) == positions{});
}

#if defined(EXERCISM_RUN_ALL_TESTS)

TEST_CASE("one turn") {
    SECTION("high") { REQUIRE(tide_table::highs({10, 30, 20}) == positions{1}); }
    SECTION("low") { REQUIRE(tide_table::lows({10, -30, 20}) == positions{1}); }
}

TEST_CASE("standing water counts once") {
    REQUIRE(tide_table::highs({1, 3, 3, 3, 2}) == positions{1});
    REQUIRE(tide_table::lows({5, 4, 4, 6}) == positions{1});
}

TEST_CASE("rising after standing is no turn") {
    REQUIRE(tide_table::highs({1, 3, 3, 4}) == positions{});
}

TEST_CASE("the ends do not count") {
    REQUIRE(tide_table::highs({9, 9, 1, 9}) == positions{});
    REQUIRE(tide_table::lows({9, 9, 1, 9}) == positions{2});
}

TEST_CASE("two tides") {
    REQUIRE(tide_table::highs({0, 5, 1, 1, 6, 6, 2, 3}) == positions{1, 4});
    REQUIRE(tide_table::lows({0, 5, 1, 1, 6, 6, 2, 3}) == positions{2, 6});
}

#endif
