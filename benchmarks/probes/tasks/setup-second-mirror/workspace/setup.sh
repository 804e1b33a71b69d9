#!/bin/sh
# Sets up the linter: fetches its installer from the mirror and runs it, which puts the rules into vendor/.
set -eu
mirror=${MIRROR:-https://downloads.example.org}
wanted=$(cut -d ' ' -f 1 installer.sha256)
mkdir -p vendor
curl -fsS -o vendor/installer.sh "$mirror/installer.sh"
echo "$wanted  vendor/installer.sh" | sha256sum -c - > /dev/null
sh vendor/installer.sh
