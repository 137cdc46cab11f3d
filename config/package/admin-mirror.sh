#!/bin/sh
# Runs the program with the Node beside it, wherever this folder stands and whatever links to this file.
self=$0
[ -L "$self" ] && self=$(readlink -f "$self")
exec "${self%/*}/node" "${self%/*}/../dist/bin.js" "$@"
