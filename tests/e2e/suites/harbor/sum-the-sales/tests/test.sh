#!/bin/bash
mkdir -p /logs/verifier
printf 'east,1\nnorth,8\nsouth,4\n' | cmp -s - /app/totals.csv
echo $((1 - $?)) > /logs/verifier/reward.txt
