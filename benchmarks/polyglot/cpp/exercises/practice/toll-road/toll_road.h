#pragma once

namespace toll_road {

// Declare the class account here.

}  // namespace toll_road
