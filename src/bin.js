#!/usr/bin/env node
// The only plain JavaScript here: an older Node must be able to read it, to say which one is needed.

const NEEDED = 24

/** @param {string} why */
function giveUp(why) {
  process.stderr.write(`${why}\n`)
  process.exit(2)
}

// Node's diagnostic reports (of running out of memory, or on a signal) would hold the environment, and so the tokens.
if (process.report) process.report.excludeEnv = true

if (Number.parseInt(process.versions.node, 10) < NEEDED)
  giveUp(
    `admin-mirror needs Node ${NEEDED} or newer, and this is Node ${process.versions.node}: install it, or in a checkout, after "npm ci", run "npx admin-mirror"`,
  )
if (process.env.NODE_DEBUG)
  giveUp('NODE_DEBUG is set: Node itself would print request headers, and tokens with them. Unset it')

await import('./main.ts')
