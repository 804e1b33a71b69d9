#pragma once

#include <string>

namespace luggage_tag {

std::string label(const std::string& airline, int number);
bool is_valid(const std::string& text);

}  // namespace luggage_tag
