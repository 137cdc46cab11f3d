#!/usr/bin/env node
// The only plain JavaScript here: it must run on any Node, so that it can find the one the program needs.
import { spawn } from 'node:child_process'
import module from 'node:module'

const NEEDED = 24

// Where Node is told to write reports (of running out of memory, or on a signal), it would write all of the environment
// into them, and so the tokens. Versions that do not know this yet write it all the same.
if (process.report) process.report.excludeEnv = true

/** Where `npm ci` put the Node that the lockfile names, or null where it was left out. */
function lockedNode() {
  try {
    return module.createRequire(import.meta.url).resolve(`node-${process.platform}-${process.arch}/bin/node`)
  } catch {
    return null
  }
}

/**
 * Runs this file again with the locked Node, and ends as that process ends.
 * @param {string} node
 */
function runWith(node) {
  // The channel is how the child learns that this process was killed: it must not go on without its parent.
  const child = spawn(node, [...process.execArgv, ...process.argv.slice(1)], {
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    env: { ...process.env, ADMIN_MIRROR_NODE: node },
  })
  for (const signal of /** @type {const} */ (['SIGTERM', 'SIGINT', 'SIGHUP'])) {
    // A terminal sends Ctrl-C to both processes; only a signal sent to this one alone has to be handed on.
    process.on(signal, () => {
      if (signal !== 'SIGINT' || !process.stdin.isTTY) child.kill(signal)
    })
  }
  child.on('error', (error) => giveUp(`Node ${NEEDED} at ${node} cannot be run: ${error.message}`))
  child.on('exit', (code, signal) => {
    if (!signal) process.exit(code ?? 1)
    process.removeAllListeners(signal)
    process.kill(process.pid, signal)
  })
}

/** @param {string} reason */
function giveUp(reason) {
  process.stderr.write(
    `admin-mirror needs Node ${NEEDED} or newer; this is Node ${process.versions.node}.\n${reason}\n` +
      `Run "npm ci" in the project's folder (it brings Node ${NEEDED} for Linux on x64 and arm64), or install Node ${NEEDED}.\n`,
  )
  process.exit(2)
}

if (Number.parseInt(process.versions.node, 10) >= NEEDED) {
  module.enableCompileCache?.()
  await import('./main.ts')
} else {
  const node = lockedNode()
  if (!node) giveUp('The locked Node is not installed here.')
  else if (process.env.ADMIN_MIRROR_NODE === node) giveUp(`The locked Node at ${node} is itself too old.`)
  else runWith(node)
}
