#!/bin/sh
# Prints the path of a headless Chromium: one that is there, else Debian's (as root), else the one in npm's
# @sparticuz/chromium, unpacked below build/browser.
set -e
for name in chromium-headless-shell chromium chromium-browser google-chrome; do
    if command -v "$name"; then exit 0; fi
done
if [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
    { apt-get update && apt-get install --yes --no-install-recommends chromium-headless-shell; } >&2 \
        && command -v chromium-headless-shell && exit 0
fi
folder="$(dirname "$0")/../build/browser"
mkdir -p "$folder" && cd "$folder"
npm install --silent --no-fund --no-audit @sparticuz/chromium >&2
TMPDIR="$PWD" node --input-type=module -e \
    'import chromium from "@sparticuz/chromium"; console.log(await chromium.executablePath())'
