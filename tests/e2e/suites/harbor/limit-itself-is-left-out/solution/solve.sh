#!/bin/bash
sed -i 's/number > limit/number >= limit/' /app/limits.py
