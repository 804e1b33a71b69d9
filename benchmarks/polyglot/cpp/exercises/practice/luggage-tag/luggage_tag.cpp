#include "luggage_tag.h"

namespace luggage_tag {

// Define label and is_valid here.

}  // namespace luggage_tag
