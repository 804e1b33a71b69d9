#include "toll_road.h"

namespace toll_road {

// Define what account does here.

}  // namespace toll_road
