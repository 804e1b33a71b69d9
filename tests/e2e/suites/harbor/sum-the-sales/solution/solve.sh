#!/bin/bash
tail -n +2 data/sales.csv | awk -F, '{ sum[$1] += $2 } END { for (r in sum) print r "," sum[r] }' | sort > totals.csv
