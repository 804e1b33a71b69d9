sed -i 's/^while read -r number; do$/while read -r number || [ -n "$number" ]; do/' total.sh
