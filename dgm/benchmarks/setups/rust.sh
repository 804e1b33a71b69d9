# Copy the sources of all crates that a repository's manifests name.
rm -rf .cargo rust-toolchain rust-toolchain.toml
cargo vendor --quiet $([ -f Cargo.lock ] && echo --locked) "$DGM_PACKAGES/vendor" > /dev/null
