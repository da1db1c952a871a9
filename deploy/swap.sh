#!/bin/sh
# Publish a new database without a failed request: swap.sh NEW.db
#
# The file gets a name of its own, `current.db` is pointed at it, the server processes restart one
# after the other, and the cache is emptied. A served file never changes: the processes that still
# run keep the old one until their turn comes.
set -eu

folder=${SPACK_CACHE_FOLDER:-/srv/spack-cache}
ports=${SPACK_CACHE_PORTS:-8001 8002}
restart=${SPACK_CACHE_RESTART:-systemctl restart spack-cache@}
cache=${SPACK_CACHE_PROXY_CACHE:-/var/cache/nginx/spack-cache}
keep=${SPACK_CACHE_KEEP:-3}
patience=${SPACK_CACHE_PATIENCE:-30}

new=$1
sum=$(sha256sum "$new" | cut -c1-16)
file=spack-cache-$sum.db

if [ "$(readlink "$folder/current.db" || true)" = "$file" ]; then
    echo "$new is what is served already"
    rm -f "$new"
    exit 0
fi

wait_until_up() {
    tries=0
    until curl -fsS -o /dev/null --max-time 10 "http://127.0.0.1:$1/" 2>/dev/null; do
        tries=$((tries + 1))
        [ "$tries" -lt "$((patience * 10))" ] || return 1
        sleep 0.1
    done
}

empty_cache() {
    # nginx asks the server again for a page whose file is gone; it need not be told.
    [ ! -d "$cache" ] || find "$cache" -type f -delete
}

point_at() {
    # The inspect file carries the hash of its database: one that does not fit is not believed.
    for end in inspect.json db; do
        ln -sfn "${1%.db}.$end" "$folder/.current.$end"
        mv -T "$folder/.current.$end" "$folder/current.$end"
    done
}

go_back() {
    echo "Error: the server on port $1 does not answer with $file; going back to ${old:-nothing}" >&2
    [ -n "$old" ] || exit 1
    point_at "$old"
    for port in $ports; do
        $restart"$port"
        wait_until_up "$port" || true
        [ "$port" != "$1" ] || break
    done
    exit 1
}

old=$(readlink "$folder/current.db" || true)
mv "$new" "$folder/$file"
[ ! -f "${new%.db}.inspect.json" ] || mv "${new%.db}.inspect.json" "$folder/${file%.db}.inspect.json"
point_at "$file"
for port in $ports; do
    $restart"$port"
    wait_until_up "$port" || go_back "$port"
done
empty_cache

# Keep the last few for going back; current.db never points at one that is removed.
cd "$folder"
ls -t spack-cache-*.db | tail -n "+$((keep + 1))" | while read -r stale; do
    [ "$stale" = "$file" ] || rm -f "$stale" "${stale%.db}.inspect.json"
done
echo "$file is served on ports $ports"
