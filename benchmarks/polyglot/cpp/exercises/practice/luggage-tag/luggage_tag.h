#pragma once

namespace luggage_tag {

// Declare label and is_valid here.

}  // namespace luggage_tag
