# Download the modules that each go.mod of a repository names; a folder with vendor/ brings its own.
find . -name go.mod -not -path '*/testdata/*' -not -path '*/vendor/*' | while read -r file; do
    folder=$(dirname "$file")
    [ -f "$folder/vendor/modules.txt" ] || (cd "$folder" && go mod download) || exit 1
done
