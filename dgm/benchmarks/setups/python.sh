# Install a Python project and what its tests need, as its developers do: runs in the checkout, $VIRTUAL_ENV is active.
# UV_EXCLUDE_NEWER is the commit's day; build backends are of that day, too.
has() { grep -qsE "$1" pyproject.toml; }
done=
if [ -f uv.lock ] || has '^\[tool\.uv\.workspace\]'; then
    lock=$([ -f uv.lock ] && echo --frozen)
    for more in "--all-extras --all-groups" "--all-groups" "" "--no-dev"; do
        uv sync --active --inexact $lock --all-packages $more && done=1 && break
    done
fi
if [ -z "$done" ] && has '^\[tool\.poetry\.(group|dev-dependencies)' && [ -f poetry.lock ]; then
    uvx --quiet poetry install --no-interaction --no-ansi && done=1
fi
if [ -z "$done" ] && { [ -f setup.py ] || [ -f setup.cfg ] || has '^\[(project|tool\.poetry|tool\.flit)'; }; then
    uv pip install --editable '.[test,tests,testing,dev]' || uv pip install --editable . || {
        [ -f setup.py ] && uv pip install --requirements setup.py || uv pip install --requirements pyproject.toml
    } || exit 1
    done=1
fi
for group in test tests testing dev; do
    has "^$group *= *\[" && has '^\[dependency-groups' && uv pip install --group "$group"
done
for file in requirements.txt requirements/base.txt requirements/main.txt \
    *requirements*test*.txt *test*requirements*.txt *requirements*dev*.txt *dev*requirements*.txt \
    requirements/*test*.txt requirements/*dev*.txt requirements/ci.txt test*/requirements*.txt; do
    [ -f "$file" ] && { uv pip install --requirements "$file" || [ -n "$done" ] || exit 1; }
done
true
