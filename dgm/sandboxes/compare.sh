# Prints the patch from a bare repository's only commit to a folder: compare.sh FOLDER REPOSITORY LIMIT <PATTERNS
# PATTERNS say what is not to be part of it, as .gitignore has them. New files are left out where the patch would have
# more than LIMIT bytes with them, the largest first; lines "# left out SIZE NAME" before the patch say which.
# Exit status: 70 the repository cannot be used, 71 the folder cannot be read; what git said is printed instead.
# 72: git failed while it made the patch.
set -u
folder=$1
repository=$2
limit=$3
exec 3>&1

# The sandbox is thrown away afterwards, and git needs room for what is new.
case $folder in
/tmp | /tmp/*) ;;
*) find /tmp -mindepth 1 -delete 2>/dev/null ;;
esac
place=$(mktemp -d /tmp/compare.XXXXXX) || exit 71
exec >"$place/said" 2>&1

fail() {
    head -c 1000 "$place/said" >&3
    exit "$1"
}

# What git cannot hold, would wait for, or would take for a repository of its own.
find "$folder" -type d ! -perm -700 -exec chmod u+rwx {} \; 2>/dev/null
find "$folder" -mindepth 1 -iname .git -prune -exec rm -rf {} + 2>/dev/null
find "$folder" -type l -iname .gitmodules -delete 2>/dev/null
find "$folder" ! -type f ! -type d ! -type l -delete 2>/dev/null
find "$folder" -type f ! -perm -400 -exec chmod u+r {} + 2>/dev/null

export HOME=/nonexistent LC_ALL=C.UTF-8 GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_ATTR_NOSYSTEM=1
export GIT_NO_REPLACE_OBJECTS=1 GIT_OPTIONAL_LOCKS=0 GIT_TERMINAL_PROMPT=0 GIT_LITERAL_PATHSPECS=1
export GIT_DIR="$repository" GIT_WORK_TREE="$folder" GIT_INDEX_FILE="$place/index"
export GIT_OBJECT_DIRECTORY="$place/objects" GIT_ALTERNATE_OBJECT_DIRECTORIES="$repository/objects"
mkdir "$place/objects" || fail 71

compare() {
    git -c safe.directory='*' -c core.hooksPath=/dev/null -c core.fsmonitor=false -c core.untrackedCache=false \
        -c core.attributesFile=/dev/null -c "core.excludesFile=$place/patterns" -c core.autocrlf=false \
        -c core.fileMode=true -c core.symlinks=true -c core.ignoreCase=false -c core.splitIndex=false \
        -c core.sparseCheckout=false -c core.compression=1 -c core.safecrlf=false -c core.quotePath=true \
        -c core.protectHFS=false -c core.protectNTFS=false \
        -c diff.external= -c diff.ignoreSubmodules=none -c submodule.recurse=false -c protocol.allow=never \
        -c gc.auto=0 "$@"
}

cd "$folder" || fail 71
compare rev-parse --quiet --verify 'HEAD^{commit}' || fail 70
# A new file of this size could never be part of the patch, and git needs room.
find . -type f -size +"$((limit / 32))k" -exec sh -c '
    for file; do
        git -c "safe.directory=*" cat-file -e "HEAD:${file#./}" 2>/dev/null && continue
        size=$(wc -c <"$file") && rm -f -- "$file" &&
            printf "# left out %s %s\n" "$size" "$(printf %s "${file#./}" | tr "\n\r" "??")"
    done' sh {} + >"$place/notes" 2>/dev/null
cat >"$place/patterns"

# The names of new files that are small enough to take so many bytes together; the others go to the notes.
choose() {
    command -v python3 >/dev/null || { cat "$place/new"; return; }
    python3 -I -c '
import os, sys
room, names = int(sys.argv[1]), sys.stdin.buffer.read().split(b"\0")[:-1]
ends = tuple(name[:-10] for name in names if name.endswith(b"/pyvenv.cfg"))
sizes = sorted((os.lstat(name).st_size, name) for name in names if not name.startswith(ends))
for size, name in sizes:
    room -= size * 4 // 3 + 400
    if room >= 0:
        sys.stdout.buffer.write(name + b"\0")
    else:
        sys.stderr.buffer.write(b"# left out %d %s\n" % (size, name.replace(b"\n", b"?")))
' "$1" <"$place/new" 2>"$place/more"
}

# An index without times: every file is read, whatever the agent made of its time stamps.
compare read-tree HEAD || fail 70
# Finds what is unchanged: of a file that it has to add, git would write an object that the image has already.
compare update-index -q --refresh
compare ls-files --others --exclude-standard -z >"$place/new" || fail 71
compare add -u -- . || fail 71
cp "$place/index" "$place/tracked" || fail 71
: >"$place/more"
for room in "$((32 * limit))" "$((limit / 2))" 0; do
    cp "$place/tracked" "$place/index" || fail 71
    choose "$room" >"$place/chosen" || fail 71
    compare update-index --add --replace -z --stdin <"$place/chosen" || fail 71
    compare diff-index --cached -p --binary --full-index --no-renames --no-ext-diff --no-textconv \
        --ignore-submodules=none --src-prefix=a/ --dst-prefix=b/ HEAD >"$place/patch" || exit 72
    [ "$(wc -c <"$place/patch")" -le "$limit" ] && break
done
# Whole lines only: what is cut off within one would be taken for a part of the patch.
cat "$place/notes" "$place/more" | sort -rn -t " " -k 4,4 | cut -c 1-180 | head -n 20 >&3
cat "$place/patch" >&3
