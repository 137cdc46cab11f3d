#!/bin/sh
# Calls /etc/admin-mirror/notify when `status --check` ends with another exit code than the last time: once, not every minute.
# Its argument is the exit code (0: all is well again), its standard input what status says. If it fails, it is called again.
last=${STATE_DIRECTORY:-/var/lib/admin-mirror}/last-check
# A full disk takes no new bytes: the code is written over the old one, in a file that was made while there was room.
[ -s "$last" ] || echo 0 > "$last"
read -r told < "$last" || told=0
said=$(admin-mirror status --check --quiet 2>&1)
code=$?
[ "$code" = "$told" ] && exit 0
printf '%s\n' "$said" | "${NOTIFY:-/etc/admin-mirror/notify}" "$code" && echo "$code" 1<> "$last"
