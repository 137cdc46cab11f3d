# Any image with Node 24 does as the base: --build-arg BASE=my-node:24. The digest is that of the tag's index, so it serves each
# architecture; who raises Node's version takes the new one from "docker buildx imagetools inspect node:VERSION-bookworm-slim".
ARG BASE=node:24.21.0-bookworm-slim@sha256:0e0ff40c39bc087845bfb27465a0df4ea419520094bc35842ff83dd8cbe6f9b6

# What is in it was made by "npm run package", as in all other ways to install it: first that, then this.
FROM ${BASE} AS build
WORKDIR /app
COPY build/program ./
# A checkout made under a strict umask is readable by its owner only, and the program does not run as root.
RUN chmod -R u=rwX,go=rX .
# Node keeps what it compiled for the next start, in a folder for each user; under a read-only root it could not, and every
# start would take twice as long. So all of it is run here once, as the user that it will run as: the demo leaves code that
# has worked, and a command without its configuration has at least been loaded.
ENV NODE_COMPILE_CACHE=/app/compiled
RUN install -d -o 10001 -g 10001 compiled
USER 10001:10001
RUN cd /tmp \
 && node /app/dist/bin.js demo > demo.txt \
 && for command in start status verify backfill rebuild resume forget schema 'query x' 'export x --format csv'; do \
      node /app/dist/bin.js $command --config none > /dev/null 2>&1 || true; \
    done \
 && chmod -R u=rwX,go=rX /app/compiled

FROM ${BASE}
# Copied, they are root's: nobody who gets into the running program can exchange them.
COPY --from=build /app /app
# The default "database" of a configuration in /config, ../data/mirror.db, is in /data. SQLite's temporary files go there
# too: a sync of some thousand rows needs one, a large sort a big one, and a read-only root has no other place for them.
ENV ADMIN_MIRROR_CONFIG=/config/admin-mirror.yaml \
    NODE_COMPILE_CACHE=/app/compiled \
    SQLITE_TMPDIR=/data
# A new named volume takes over the owner that its folder has here. /published is for a volume that readers share.
RUN install -d -o 10001 -g 10001 /data /published \
 && ln -s /app/dist/bin.js /usr/local/bin/admin-mirror
VOLUME /data
# Where a relative --output goes: the one folder that can be written under a read-only root.
WORKDIR /data
# A number, so that Kubernetes' runAsNonRoot can see that it is not root.
USER 10001:10001
STOPSIGNAL SIGTERM
# Unhealthy if somebody has to act. A restart does not help against a refused token: let nothing restart by this alone.
HEALTHCHECK --interval=1m --timeout=30s --start-period=1m CMD ["node", "/app/dist/bin.js", "status", "--check", "--quiet"]
ENTRYPOINT ["node", "/app/dist/bin.js"]
CMD ["start"]
