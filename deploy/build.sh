#!/bin/sh
# Build the next database from pages, and from mirrors, if some are configured, as a history.
set -eu
next=/srv/spack-cache/build/next.db
history=
if [ -e /etc/spack-cache/mirrors ]; then
    history="$next --snapshot $(date +%F) --keep-snapshots ${SPACK_CACHE_KEEP_SNAPSHOTS:-30}"
fi
exec /opt/spack-cache-db/.venv/bin/python -m spack_cache_db \
    build $history /srv/spack-cache/pages --jobs 4 -o "$next"
