# Install the packages of a repository for node by its own package manager, without running a script of theirs.
# DGM_DAY is the commit's day: nothing newer is taken where no lock file says the versions.
export npm_config_ignore_scripts=true npm_config_audit=false npm_config_fund=false
if [ -f pnpm-lock.yaml ]; then
    npx --yes pnpm@9 install --frozen-lockfile --ignore-scripts --config.node-linker=hoisted
elif [ -f yarn.lock ]; then
    npx --yes yarn@1 install --frozen-lockfile --ignore-scripts --ignore-engines --non-interactive
else
    [ -f package-lock.json ] || [ -f npm-shrinkwrap.json ] && npm ci
fi ||
    npm install --no-package-lock --before="${DGM_DAY}T23:59:59Z" ||
    npm install --no-package-lock --before="${DGM_DAY}T23:59:59Z" --legacy-peer-deps ||
    npm install --no-package-lock --legacy-peer-deps || exit 1
mkdir -p node_modules && cp -a node_modules/. "$DGM_PACKAGES"
