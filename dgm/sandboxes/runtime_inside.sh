# Copies an image's files to the folder $1, so that they work at $2 beside another image's files: run once, as root.
# Each command gets a small script in $1/.dgm/bin that starts it with the image's own loader and libraries.
set -eu
to=$1 at=$2 commands=$1/.dgm/bin
for folder in /*; do
    case $folder in "$to" | /dev | /proc | /sys | /run | /tmp | /var) ;; *) cp -a "$folder" "$to/" ;; esac
done
# The engine wrote these, from what its own machine has.
rm -f "$to/etc/resolv.conf" "$to/etc/hosts" "$to/etc/hostname"
chmod -R a+rX,ug-s "$to"
find "$to" -type l | while read -r link; do
    target=$(readlink "$link")
    case $target in /*) ln -sfn "$at$target" "$link" ;; esac
done
loader=$(ls -d /lib64/ld-linux-*.so.* /lib/ld-linux-*.so.* 2>/dev/null | head -n 1)
[ -n "$loader" ] || { echo "it has no GNU C library: base it on Debian or Ubuntu" >&2; exit 3; }
libraries=$(cat /etc/ld.so.conf.d/*.conf 2>/dev/null | sed -n 's,^/,&,p' | sort -u)
path=
for folder in $libraries /lib64 /usr/lib64 /lib /usr/lib /usr/local/lib; do
    [ ! -d "$folder" ] || path="$path${path:+:}$at$folder"
done
start="$at$loader --library-path $path"
"$loader" --help 2>&1 | grep -q -e --argv0 && named=1 || named=
mkdir -p "$commands" "$to/.dgm/lib"
# A Python whose program is such a script finds its own library beside it.
for library in /usr/lib/python3* /usr/local/lib/python3*; do
    [ ! -d "$library" ] || ln -sfn "$at$library" "$to/.dgm/lib/$(basename "$library")"
done
IFS=:
for folder in $PATH; do
    for file in "$folder"/*; do
        name=$(basename "$file")
        [ -f "$file" ] && [ -x "$file" ] && [ ! -e "$commands/$name" ] || continue
        if [ "$(head -c 2 "$file")" = "#!" ]; then
            words=$(head -n 1 "$file" | sed 's/^#! *//; s,^[^ ]*/env \(-S \)\?,,; s,^/[^ ]*/,,')
            line="exec $at/.dgm/bin/$words \"$at$file\" \"\$@\""
        elif "$loader" --verify "$file" 2>/dev/null; then
            line="exec $start ${named:+--argv0 "$at/.dgm/bin/$name" }\"$at$file\" \"\$@\""
        else
            line="exec \"$at$file\" \"\$@\""
        fi
        printf '#!/bin/sh\n%s\n' "$line" >"$commands/$name"
        chmod 755 "$commands/$name"
    done
done 2>/dev/null
