#include "luggage_tag.h"

#include <algorithm>
#include <stdexcept>

namespace luggage_tag {

namespace {

bool upper(char c) { return c >= 'A' && c <= 'Z'; }
bool digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

std::string label(const std::string& airline, int number) {
    if (airline.size() != 2 || !std::all_of(airline.begin(), airline.end(), upper)) {
        throw std::domain_error("an airline has two upper-case letters");
    }
    if (number < 0 || number > 999999) {
        throw std::domain_error("a number has up to six digits");
    }
    const std::string digits = std::to_string(number);
    return airline + std::string(6 - digits.size(), '0') + digits + std::to_string(number % 7);
}

bool is_valid(const std::string& text) {
    if (text.size() != 9 || !std::all_of(text.begin(), text.begin() + 2, upper) ||
        !std::all_of(text.begin() + 2, text.end(), digit)) {
        return false;
    }
    return std::stoi(text.substr(2, 6)) % 7 == text[8] - '0';
}

}  // namespace luggage_tag
