# Prints what an image lacks of the programs by which sandboxes work and patches are graded, one a line.
# PATH is that of a sandbox's programs.
for name in python3 git tar find cp mkdir chmod head; do
    command -v "$name" >/dev/null || echo "$name"
done
if command -v python3 >/dev/null; then
    python3 -I -c 'import sys; sys.exit(sys.version_info < (3, 9))' ||
        echo "Python 3.9 ($(python3 -I -c 'import sys; print("python3 is %d.%d" % sys.version_info[:2])'))"
fi
exec 2>/dev/null
/usr/bin/timeout -s KILL 9.000 /usr/bin/env -C / -- /bin/sh -c : || echo "GNU coreutils (/usr/bin/timeout, /usr/bin/env -C)"
command -v tar >/dev/null && { tar -c --hard-dereference --null --verbatim-files-from -T /dev/null -f - >/dev/null ||
    echo "GNU tar"; }
command -v find >/dev/null && { find / -maxdepth 0 -printf '' || echo "GNU find"; }
exit 0
