#include "toll_road.h"

#include "test/catch.hpp"

#include <stdexcept>

static int ride(toll_road::account& account, int first, int last) {
    account.enter(first);
    return account.leave(last);
}

TEST_CASE("a new account is empty") {
    toll_road::account account{};
    REQUIRE(account.total() == 0);
    REQUIRE(account.longest() == 0);
}

#if defined(EXERCISM_RUN_ALL_TESTS)

TEST_CASE("the price of a ride") {
    toll_road::account account{};
    REQUIRE(ride(account, 10, 30) == 62);
    REQUIRE(ride(account, 30, 10) == 62);
    REQUIRE(ride(account, 7, 7) == 0);
}

TEST_CASE("rides are summed up") {
    toll_road::account account{};
    ride(account, 0, 1);
    ride(account, 4, 2);
    ride(account, 5, 5);
    REQUIRE(account.total() == 13);
    REQUIRE(account.longest() == 2);
}

TEST_CASE("entering twice is an error") {
    toll_road::account account{};
    account.enter(1);
    REQUIRE_THROWS_AS(account.enter(2), std::runtime_error);
    REQUIRE(account.leave(2) == 5);
}

TEST_CASE("leaving first is an error") {
    toll_road::account account{};
    REQUIRE_THROWS_AS(account.leave(2), std::runtime_error);
}

TEST_CASE("a wrong gate changes nothing") {
    toll_road::account account{};
    account.enter(1);
    REQUIRE_THROWS_AS(account.leave(-1), std::runtime_error);
    REQUIRE(account.leave(2) == 5);
}

#endif
