#include "luggage_tag.h"

#include "test/catch.hpp"

#include <stdexcept>

TEST_CASE("label pads the number", "[label]") {
    REQUIRE(luggage_tag::label("QX", 1234) == "QX0012342");
}

#if defined(EXERCISM_RUN_ALL_TESTS)
TEST_CASE("label takes the largest number", "[label]") {
    REQUIRE(luggage_tag::label("AZ", 999999) == "AZ9999990");
}

TEST_CASE("label takes zero", "[label]") {
    REQUIRE(luggage_tag::label("AA", 0) == "AA0000000");
}

TEST_CASE("label refuses an airline in lower case", "[label]") {
    REQUIRE_THROWS_AS(luggage_tag::label("qx", 1), std::domain_error);
}

TEST_CASE("label refuses a number out of range", "[label]") {
    REQUIRE_THROWS_AS(luggage_tag::label("QX", -1), std::domain_error);
    REQUIRE_THROWS_AS(luggage_tag::label("QX", 1000000), std::domain_error);
}

TEST_CASE("is_valid knows a printed tag", "[valid]") {
    REQUIRE(luggage_tag::is_valid("QX0012342"));
}

TEST_CASE("is_valid sees what is no tag", "[valid]") {
    REQUIRE_FALSE(luggage_tag::is_valid("QX0012343"));
    REQUIRE_FALSE(luggage_tag::is_valid("QX00123420"));
    REQUIRE_FALSE(luggage_tag::is_valid("qx0012342"));
    REQUIRE_FALSE(luggage_tag::is_valid(""));
}
#endif
