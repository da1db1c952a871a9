#!/bin/sh
# Publish a database: publish.sh FILE
#
# Moves a copy of FILE to the place of the published database. The server opens it before its next
# request; nothing is restarted. If the server does not show it within 30 seconds, the old one returns.
#
# The script may be killed at any moment and run again.
set -eu
umask 022

folder=${SPACK_CACHE_FOLDER:-/srv/spack-cache}
health=${SPACK_CACHE_HEALTH:-http://127.0.0.1:8001/-/health.json}
# Does nothing if the server runs.
start=${SPACK_CACHE_START:-systemctl start spack-cache}
cache=${SPACK_CACHE_PROXY_CACHE:-/var/cache/nginx/spack-cache}
keep=${SPACK_CACHE_KEEP:-3}
patience=${SPACK_CACHE_PATIENCE:-30}

published=$folder/published
old=$folder/old
incoming=$published/.incoming

fail() {
    echo "Error: $*" >&2
    exit 1
}

copy() {
    # Copy first, then check, because $1 may change. Links are copied as links, so that someone who
    # may write there cannot publish a file that only root may read.
    cp -P "$1" "$incoming/$2"
    [ -f "$incoming/$2" ] && [ ! -L "$incoming/$2" ] ||
        fail "$1 is not a regular file; give the database itself"
}

take() {
    rm -rf "$incoming"
    mkdir "$incoming"
    copy "$1" spack-cache.db
    # The server uses the inspect file only if it has the hash of the database.
    [ ! -e "${1%.db}.inspect.json" ] || copy "${1%.db}.inspect.json" spack-cache.inspect.json
    # Four threads take 260 MB, whatever the size of the file; the limit of the service is 500 MB.
    ! command -v zstd >/dev/null || zstd -q -10 -T4 "$incoming/spack-cache.db"
    chmod -R u=rwX,go=rX "$incoming"
    sync "$incoming"/* "$incoming"
}

put() {
    # The inspect file first: the server reads it when it opens the database.
    rm -f "$published/spack-cache.db.zst"
    for name in spack-cache.inspect.json spack-cache.db spack-cache.db.zst; do
        [ ! -e "$1/$name" ] || mv "$1/$name" "$published/$name"
    done
    sync "$published"
}

is_shown() {
    # The status is 503 if the data are old, which is no fault of this script.
    curl -sS --max-time 10 "$health" 2>/dev/null | grep -q "\"sha256\": \"$1\""
}

wait_until_shown() {
    tries=0
    until is_shown "$1"; do
        tries=$((tries + 1))
        [ "$tries" -lt "$((patience * 10))" ] || return 1
        sleep 0.1
    done
}

empty_cache() {
    # nginx fetches a page again if its file is gone.
    name='????????????????????????????????'
    [ ! -d "$cache" ] || find "$cache" -ignore_readdir_race -type f -name "$name" -delete
}

[ $# -eq 1 ] || fail "give one database: publish.sh FILE"
[ -f "$1" ] || fail "$1: there is no such file"
mkdir -p "$published" "$old"
exec 9>"$folder/.lock"
flock 9
trap 'rm -rf "$incoming"' EXIT
trap 'exit 1' HUP INT TERM

take "$1"
sum=$(sha256sum <"$incoming/spack-cache.db" | cut -d' ' -f1)
before=
if [ -e "$published/spack-cache.db" ]; then
    before=$(sha256sum <"$published/spack-cache.db" | cut -d' ' -f1)
    mkdir -p "$old/$before"
    for name in spack-cache.inspect.json spack-cache.db; do
        [ ! -e "$published/$name" ] || ln -f "$published/$name" "$old/$before/$name"
    done
fi
put "$incoming"
$start 9>&-
if ! wait_until_shown "$sum"; then
    [ -n "$before" ] && [ "$before" != "$sum" ] ||
        fail "the server does not show $1, and there is nothing to go back to"
    cp -r "$old/$before" "$incoming.old"
    put "$incoming.old"
    rmdir "$incoming.old"
    empty_cache
    fail "the server does not show $1; the old database is published again: see its log"
fi
empty_cache

# Keep the newest ones, so that you can return to them.
[ -z "$before" ] || touch "$old/$before"
ls -t "$old" | tail -n "+$keep" | while read -r stale; do
    rm -rf "${old:?}/$stale"
done
echo "$1 is published as $published/spack-cache.db"
