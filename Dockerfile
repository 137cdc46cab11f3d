# Any image with Node 24 does as the base: --build-arg BASE=my-node:24. The digest is that of the tag's index, so it serves each
# architecture; "docker buildx imagetools inspect node:VERSION-bookworm-slim" prints that of another version.
ARG BASE=node:24.21.0-bookworm-slim@sha256:0e0ff40c39bc087845bfb27465a0df4ea419520094bc35842ff83dd8cbe6f9b6

# The image holds the same npm package that everybody else installs.
FROM ${BASE} AS build
WORKDIR /checkout
COPY . .
RUN npm ci \
 && npm run package \
 && npm install --global --prefix /app --ignore-scripts build/admin-mirror-*.tgz

FROM ${BASE}
# Copied, it is root's: the running program cannot change itself.
COPY --from=build /app /app
# The default "database" of a configuration in /config, ../data/mirror.db, is in /data. SQLite's temporary files go there too:
# a read-only root has no other place for them. Pages are short-lived: with a small young generation a first sync needs two thirds of the memory.
ENV PATH=/app/bin:$PATH \
    NODE_OPTIONS=--max-semi-space-size=4 \
    ADMIN_MIRROR_CONFIG=/config/admin-mirror.yaml \
    SQLITE_TMPDIR=/data
# A new named volume takes over the owner that its folder has here. /published is for a volume that readers share.
RUN install -d -o 10001 -g 10001 /data /published
VOLUME /data
WORKDIR /data
# A number, so that Kubernetes' runAsNonRoot can see that it is not root.
USER 10001:10001
STOPSIGNAL SIGTERM
# Unhealthy if somebody has to act. A restart does not help against a refused token: let nothing restart by this alone.
HEALTHCHECK --interval=1m --timeout=30s --start-period=1m CMD ["admin-mirror", "status", "--check", "--quiet"]
ENTRYPOINT ["admin-mirror"]
CMD ["start"]
