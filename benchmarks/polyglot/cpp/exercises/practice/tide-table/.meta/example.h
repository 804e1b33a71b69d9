#pragma once

#include <cstddef>
#include <vector>

namespace tide_table {

inline std::vector<std::size_t> turns(const std::vector<int>& heights, int sign) {
    std::vector<std::size_t> starts, found;
    for (std::size_t n = 0; n < heights.size(); ++n) {
        if (n == 0 || heights[n] != heights[n - 1]) starts.push_back(n);
    }
    for (std::size_t n = 1; n + 1 < starts.size(); ++n) {
        const int here = sign * heights[starts[n]];
        if (here > sign * heights[starts[n - 1]] && here > sign * heights[starts[n + 1]]) {
            found.push_back(starts[n]);
        }
    }
    return found;
}

inline std::vector<std::size_t> highs(const std::vector<int>& heights) { return turns(heights, 1); }
inline std::vector<std::size_t> lows(const std::vector<int>& heights) { return turns(heights, -1); }

}  // namespace tide_table
