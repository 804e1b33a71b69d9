set -e
test "$(printf '1\n2\n3' | sh total.sh)" = 6
test "$(printf '1\n2\n3\n' | sh total.sh)" = 6
test "$(printf '' | sh total.sh)" = 0
