#pragma once

#include <optional>

namespace toll_road {

class account {
   public:
    void enter(int gate);
    int leave(int gate);
    int total() const { return total_; }
    int longest() const { return longest_; }

   private:
    std::optional<int> entered_;
    int total_ = 0;
    int longest_ = 0;
};

}  // namespace toll_road
