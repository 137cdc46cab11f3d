#!/bin/sh
# The service's configuration counts where none is named and none stands here.
if [ -z "${ADMIN_MIRROR_CONFIG:-}" ] && [ ! -e config/admin-mirror.yaml ]; then
  export ADMIN_MIRROR_CONFIG=/etc/admin-mirror/admin-mirror.yaml
fi
exec /usr/lib/admin-mirror/bin/node /usr/lib/admin-mirror/dist/bin.js "$@"
