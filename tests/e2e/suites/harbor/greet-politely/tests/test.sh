#!/bin/bash
points=0
[ "$(sh /app/greet.sh Ada)" = "Good day, Ada!" ] && points=$((points + 1))
[ "$(sh /app/greet.sh)" = "Good day!" ] && points=$((points + 1))
printf '{"reward": %s}' "$(python3 -c "print($points / 2)")" > /logs/verifier/reward.json
