# Prints the patch from a bare repository's only commit to a folder: compare.sh FOLDER REPOSITORY
# Exit status: 70 the repository cannot be used, 71 the folder cannot be read; what git said is printed instead.
# 72: git failed while it printed the patch.
set -u
folder=$1
repository=$2
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
        -c core.attributesFile=/dev/null -c core.excludesFile=/dev/null -c core.autocrlf=false \
        -c core.fileMode=true -c core.symlinks=true -c core.ignoreCase=false -c core.splitIndex=false \
        -c core.sparseCheckout=false -c core.compression=1 -c core.safecrlf=false -c core.quotePath=true \
        -c core.protectHFS=false -c core.protectNTFS=false \
        -c diff.external= -c diff.ignoreSubmodules=none -c submodule.recurse=false -c protocol.allow=never \
        -c gc.auto=0 "$@"
}

cd "$folder" || fail 71
compare rev-parse --quiet --verify 'HEAD^{commit}' || fail 70
# An index without times: every file is read, whatever the agent made of its time stamps.
compare read-tree HEAD || fail 70
# Finds what is unchanged: of a file that it has to add, git would write an object that the image has already.
compare update-index -q --refresh
compare add -A -- . || fail 71
compare diff-index --cached -p --binary --full-index --no-renames --no-ext-diff --no-textconv \
    --ignore-submodules=none --src-prefix=a/ --dst-prefix=b/ HEAD >&3 || exit 72
