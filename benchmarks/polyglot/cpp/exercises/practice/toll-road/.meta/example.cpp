#include "toll_road.h"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

namespace toll_road {

namespace {

int known(int gate) {
    if (gate < 0) throw std::runtime_error("there is no such gate");
    return gate;
}

}  // namespace

void account::enter(int gate) {
    if (entered_) throw std::runtime_error("the car is on the road already");
    entered_ = known(gate);
}

int account::leave(int gate) {
    if (!entered_) throw std::runtime_error("the car is not on the road");
    const int ride = std::abs(known(gate) - *entered_);
    entered_.reset();
    const int price = ride ? 3 * ride + 2 : 0;
    total_ += price;
    longest_ = std::max(longest_, ride);
    return price;
}

}  // namespace toll_road
