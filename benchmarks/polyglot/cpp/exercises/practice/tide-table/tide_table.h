#pragma once

namespace tide_table {

// Declare highs and lows here.

}  // namespace tide_table
