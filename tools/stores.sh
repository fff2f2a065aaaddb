#!/bin/sh
# Prints the path of Azurite's server of blobs: the one that is there, else npm's, installed once into the cache of the
# tests. npm comes from Debian where there is none (as root).
set -e
version=3.37.0
if command -v azurite-blob; then exit 0; fi
folder="${XDG_CACHE_HOME:-$HOME/.cache}/hoodie-tests/azurite-$version"
server="$folder/node_modules/.bin/azurite-blob"
if [ ! -x "$server" ]; then
    if ! command -v npm > /dev/null && [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
        { apt-get update && apt-get install --yes --no-install-recommends nodejs npm; } >&2
    fi
    command -v npm > /dev/null || { echo 'npm is missing: install Node.js with npm, then run this again' >&2; exit 1; }
    mkdir -p "$folder"
    npm install --silent --no-fund --no-audit --prefix "$folder" "azurite@$version" >&2
fi
echo "$server"
