#!/bin/bash
# Keep the history of a catalogue as assets of a release on GitHub:
#
#   history.sh download FOLDER   download the newest history into FOLDER; on the first run, there is none
#   history.sh upload FILE       upload FILE as the newest history, and remove all but the newest three
#
# It runs gh, which reads GH_TOKEN and GH_REPO. A history that is on GitHub and cannot be downloaded
# stops the run, because the next step would begin another one. An upload that is cut off leaves the
# older histories as they are, and is never downloaded.
set -euo pipefail

release=catalogue
keep=3

fail() {
    echo "Error: $*" >&2
    exit 1
}

# The names of assets, oldest first: `assets ==` are those that are whole, which GitHub calls `uploaded`, and
# `assets !=` the others.
# Without a release, there are none; if GitHub does not respond, gh fails and the run ends.
assets() {
    gh api --paginate "repos/$GH_REPO/releases" --jq ".[] | select(.tag_name == \"$release\") |
        .assets[] | select(.name | startswith(\"history-\")) | select(.state $1 \"uploaded\") | .name" | sort
}

# The first digits of the checksum of a file. The name of an asset has them.
digits() {
    sha256sum <"$1" | cut -c 1-16
}

download() {
    mkdir -p "$1"
    name=$(assets == | tail -n 1)
    if [ -z "$name" ]; then
        echo "There is no history yet: this run begins one"
        return
    fi
    gh release download "$release" --pattern "$name" --dir "$1"
    # The name ends with the checksum of what was uploaded.
    [[ $name = *-$(digits "$1/$name").db ]] || fail "$name is not what was uploaded"
    echo "The history goes on from $name"
}

upload() {
    sum=$(digits "$1")
    newest=$(assets == | tail -n 1)
    if [[ $newest = *-$sum.db ]]; then
        echo "The history has not changed since the last run"
        return
    fi
    # A pre-release is never shown as the latest release of the project.
    gh release view "$release" >/dev/null 2>&1 ||
        gh release create "$release" --prerelease --title "Catalogue of the public build cache" \
            --notes "The databases of the newest nights. The workflow \`Catalogue\` continues the newest one."
    name=history-$(date -u +%Y%m%dT%H%M%SZ)-$sum.db
    folder=$(mktemp -d)
    cp "$1" "$folder/$name"
    gh release upload "$release" "$folder/$name"
    rm -r "$folder"
    # Remove older ones, and parts of uploads, only if GitHub lists the new one as whole.
    newest=$(assets == | tail -n 1)
    [ "$newest" = "$name" ] || fail "GitHub does not list $name as its newest history"
    # `head -n -3` prints all lines but the last three.
    stale=$(assets == | head -n "-$keep" && assets '!=')
    for old in $stale; do
        gh release delete-asset "$release" "$old" --yes
    done
    echo "The newest history is $name"
}

case ${1-} in
    download) download "$2" ;;
    upload) upload "$2" ;;
    *) fail "expected history.sh download FOLDER, or history.sh upload FILE" ;;
esac
