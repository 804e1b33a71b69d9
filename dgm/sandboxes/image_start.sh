# Runs prepare_inside.py in an image if it has the programs by which sandboxes work and patches are graded.
# Arguments: seconds that it may take, the program's text, and its arguments. The last line of output is a JSON object:
# the program's, or one that names what the image lacks.
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin${PATH:+:$PATH}
lacks=
lack() { lacks="$lacks${lacks:+, }$1"; }
for name in python3 git tar find cp mkdir chmod head mktemp; do
    command -v "$name" >/dev/null 2>&1 || lack "$name"
done
if command -v python3 >/dev/null 2>&1; then
    python3 -I -c 'import sys; sys.exit(sys.version_info < (3, 9))' ||
        lack "Python 3.9 ($(python3 -I -c 'import sys; print("python3 is %d.%d" % sys.version_info[:2])'))"
fi
/usr/bin/timeout -s KILL 9.000 /usr/bin/env -C / -- /bin/sh -c : 2>/dev/null ||
    lack "GNU coreutils (/usr/bin/timeout, /usr/bin/env -C)"
! command -v tar >/dev/null 2>&1 ||
    tar -c --hard-dereference --null --verbatim-files-from -T /dev/null -f - >/dev/null 2>&1 || lack "GNU tar"
! command -v find >/dev/null 2>&1 || find / -maxdepth 0 -printf '' 2>/dev/null || lack "GNU find"
[ -z "$lacks" ] || { echo "{\"lacks\": \"$lacks\"}"; exit 0; }
limit=$1 program=$2
shift 2
exec timeout -s KILL "$limit" python3 -I -c "$program" "$@"
