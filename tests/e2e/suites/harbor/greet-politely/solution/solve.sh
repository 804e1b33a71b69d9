#!/bin/bash
echo 'if [ -n "$1" ]; then echo "Good day, $1!"; else echo "Good day!"; fi' > greet.sh
