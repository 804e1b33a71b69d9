// Catch 2 as the system has it, where tracks keep a copy of the single header.
#include <catch2/catch.hpp>
