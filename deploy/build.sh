#!/bin/sh
# Build the next database: from pages, from mirrors as a history, and with the options of this site.
#
# /etc/spack-cache/build     more options and paths for `build`, such as `--installation derecho=/opt/sw`
# /etc/spack-cache/required  an environment, or a folder of environments: if one of its specs had a binary
#                            in the published database and lost it, nothing is published
set -eu
folder=/srv/spack-cache
next=$folder/build/next.db
program="/opt/spack-cache-db/current/.venv/bin/python -m spack_cache_db"
history=
if [ -e /etc/spack-cache/mirrors ]; then
    history="$next --snapshot $(date +%F) --keep-snapshots ${SPACK_CACHE_KEEP_SNAPSHOTS:-30}"
fi
# Options are separated by blanks, on any number of lines.
options=$(sed 's/#.*//' /etc/spack-cache/build 2>/dev/null || true)
$program build $history $options $folder/pages --jobs 4 -o "$next"
if [ -e /etc/spack-cache/required ] && [ -e $folder/published ]; then
    exec $program cover /etc/spack-cache/required "$next" --baseline $folder/published/spack-cache.db
fi
