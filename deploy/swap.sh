#!/bin/sh
# Publish a database without a failed request: swap.sh FILE
#
# Copies FILE into a folder named after its SHA-256, points the link `current` to that folder, restarts
# the servers one after the other, and empties nginx's cache. Databases that are served never change: a
# server keeps the old one until it restarts.
#
# The script may be killed at any moment and run again. `served` names the last database that all
# servers responded with; `swapping` exists from the start of a swap to its end.
set -eu
umask 022

folder=${SPACK_CACHE_FOLDER:-/srv/spack-cache}
ports=${SPACK_CACHE_PORTS:-8001 8002}
restart=${SPACK_CACHE_RESTART:-systemctl restart spack-cache@}
run=${SPACK_CACHE_RUN:-/run/spack-cache}
cache=${SPACK_CACHE_PROXY_CACHE:-/var/cache/nginx/spack-cache}
keep=${SPACK_CACHE_KEEP:-3}
patience=${SPACK_CACHE_PATIENCE:-30}

files=$folder/files
incoming=$files/.incoming

fail() {
    echo "Error: $*" >&2
    exit 1
}

is_served() {
    [ "$(readlink "$folder/current")" = "files/$1" ] && [ "$1" = "$old" ] &&
        [ ! -e "$folder/swapping" ]
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
    sum=$(sha256sum <"$incoming/spack-cache.db" | cut -c1-16)
    # Servers use the inspect file only if it has the hash of the database.
    [ ! -e "${1%.db}.inspect.json" ] || copy "${1%.db}.inspect.json" spack-cache.inspect.json
    if [ -d "$files/$sum" ]; then
        # Its inspect file has the time at which the last build looked at the sources.
        if [ -e "$incoming/spack-cache.inspect.json" ]; then
            chmod u=rw,go=r "$incoming/spack-cache.inspect.json"
            mv -T "$incoming/spack-cache.inspect.json" "$files/$sum/spack-cache.inspect.json"
        fi
        return 0
    fi
    ! command -v zstd >/dev/null || zstd -q -10 -T0 "$incoming/spack-cache.db"
    chmod -R u=rwX,go=rX "$incoming"
    sync "$incoming"/* "$incoming"
    mv -T "$incoming" "$files/$sum"
    sync "$files"
}

point_at() {
    ln -sfn "files/$1" "$folder/.current"
    mv -T "$folder/.current" "$folder/current"
    sync "$folder"
}

wait_until_up() {
    tries=0
    until curl -fsS -o /dev/null --max-time 10 "http://127.0.0.1:$1/" 2>/dev/null; do
        tries=$((tries + 1))
        [ "$tries" -lt "$((patience * 10))" ] || return 1
        sleep 0.1
    done
}

restart_all() {
    # Stop new requests to each server, then restart it; `port` is the one that failed.
    # Create the folder each time: systemd removes it when the unit that created it ends.
    for port in $ports; do
        mkdir -p "$run/draining"
        : >"$run/draining/$port"
        sleep 0.5
        $restart"$port" 9>&- && wait_until_up "$port" || return 1
        rm -f "$run/draining/$port"
    done
}

empty_cache() {
    # nginx fetches a page again if its file is gone.
    name='????????????????????????????????'
    [ ! -d "$cache" ] || find "$cache" -ignore_readdir_race -type f -name "$name" -delete
}

finish() {
    empty_cache
    echo "$1" >"$folder/.served"
    mv -T "$folder/.served" "$folder/served"
    rm "$folder/swapping"
}

go_back() {
    { [ -n "$old" ] && [ "$old" != "$sum" ]; } ||
        fail "the server on port $port does not answer with $1, and there is nothing to go back to"
    echo "Error: the server on port $port does not answer with $1; going back to $old" >&2
    point_at "$old"
    # Restart the one that fails first; the others respond meanwhile.
    rest=
    for each in $ports; do
        [ "$each" = "$port" ] || rest="$rest $each"
    done
    ports=$port$rest
    restart_all || fail "the server on port $port does not answer with $old either"
    finish "$old"
    exit 1
}

[ $# -eq 1 ] || fail "give one database: swap.sh FILE"
[ -f "$1" ] || fail "$1: there is no such file"
mkdir -p "$files"
exec 9>"$files/.lock"
flock 9
trap 'rm -rf "$incoming" "$run/draining"' EXIT
trap 'exit 1' HUP INT TERM
rm -rf "$run/draining"

old=$(cat "$folder/served" 2>/dev/null || true)
take "$1"
if is_served "$sum"; then
    echo "$1 is what is served already"
    exit 0
fi
: >"$folder/swapping"
point_at "$sum"
restart_all || go_back "$1"
finish "$sum"

# Keep the newest ones, so that you can return to them.
touch "$files/$sum"
ls -t "$files" | grep -vx "$sum" | tail -n "+$keep" | while read -r stale; do
    rm -rf "${files:?}/$stale"
done
echo "$1 is served on ports $ports, as $folder/files/$sum"
