test "$(cat status.txt)" = ready
