#!/usr/bin/env node
// The only plain JavaScript here: it must run on any Node, to find the one that the program needs.
import { spawn } from 'node:child_process'
import fs from 'node:fs'
import module from 'node:module'
import { homedir } from 'node:os'
import path from 'node:path'
import { isMainThread, Worker, workerData } from 'node:worker_threads'

const NEEDED = 24

/** How often the thread checks that the parent is alive. */
const LOOK_AT_PARENT_EVERY_MS = 500

// Node's diagnostic reports (of running out of memory, or on a signal) would hold the environment, and so the tokens.
// Versions without this option write the environment all the same.
if (process.report) process.report.excludeEnv = true

/** Where `npm ci` put the Node of the lockfile, or null if it is not installed, as outside of a checkout. */
function lockedNode() {
  try {
    return module.createRequire(import.meta.url).resolve(`node-${process.platform}-${process.arch}/bin/node`)
  } catch {
    return null
  }
}

/**
 * Runs this file again with the locked Node, and ends like that process.
 * @param {string} node
 */
function runWith(node) {
  const child = spawn(node, [...process.execArgv, ...process.argv.slice(1)], {
    stdio: 'inherit',
    env: { ...process.env, ADMIN_MIRROR_NODE: node, ADMIN_MIRROR_PARENT: String(process.pid) },
  })
  for (const signal of /** @type {const} */ (['SIGTERM', 'SIGINT', 'SIGHUP'])) {
    // A terminal sends Ctrl-C to both processes; other signals reach only this one, and are forwarded.
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

/**
 * Starts a thread that ends this process when its parent, a mere launcher, was killed. A thread, since SQLite may block
 * the main one for hours.
 * @param {string} parent
 */
function dieWithParent(parent) {
  // Without the environment, and without what tests and tools load into every process.
  new Worker(new URL(import.meta.url), { workerData: Number(parent), env: {}, execArgv: [] }).unref()
}

/** @param {unknown} parent */
function watchParent(parent) {
  // A process whose parent ended gets another parent.
  if (process.ppid !== parent) process.kill(process.pid, 'SIGKILL')
  setTimeout(watchParent, LOOK_AT_PARENT_EVERY_MS, parent)
}

/** @param {string} reason */
function giveUp(reason) {
  process.stderr.write(
    `admin-mirror needs Node ${NEEDED} or newer; this is Node ${process.versions.node}.\n${reason}\n` +
      `Install Node ${NEEDED}, or a package of admin-mirror that brings its own (.deb, .tar.gz). In a checkout, "npm ci" brings it.\n`,
  )
  process.exit(2)
}

/**
 * Keeps compiled code from one start to the next, which more than halves the time of a start. Whoever can write to its folder can run
 * code here, with our tokens. Node's own choice is a subfolder of the temporary folder, which any user of the machine can make first.
 */
function keepCompiledCode() {
  const folder = process.env.NODE_COMPILE_CACHE || ownCacheFolder()
  if (folder) module.enableCompileCache?.(folder)
}

/** A folder that only this user can write to or replace, in his home or in XDG_CACHE_HOME; null if there is none. */
function ownCacheFolder() {
  const { XDG_CACHE_HOME: named = '' } = process.env
  const isNamed = path.isAbsolute(named)
  try {
    const home = fs.realpathSync(isNamed ? named : homedir())
    // The home is checked first: with `sudo` it may be another user's, who could replace everything that is made in it.
    if (!isOurs(fs.statSync(home), 0o022) || canBeExchanged(home)) return null
    const parent = path.join(home, isNamed ? '' : '.cache')
    fs.mkdirSync(path.join(parent, 'admin-mirror'), { recursive: true, mode: 0o700 })
    const folder = path.join(fs.realpathSync(parent), 'admin-mirror')
    return isOurs(fs.lstatSync(folder), 0o077) && !canBeExchanged(folder) ? folder : null
  } catch {
    return null
  }
}

/**
 * Whether another user may put something else in the place of a folder, or of one above it.
 * @param {string} folder Without links.
 * @returns {boolean}
 */
function canBeExchanged(folder) {
  const above = path.dirname(folder)
  if (above === folder) return false
  const { uid, mode } = fs.statSync(above)
  const isOthers = uid !== 0 && uid !== process.getuid?.()
  const isSticky = (mode & 0o1000) !== 0
  return isOthers || ((mode & 0o022) !== 0 && !isSticky) || canBeExchanged(above)
}

/**
 * @param {fs.Stats} stat
 * @param {number} others What nobody else may do, as in a mode.
 */
function isOurs(stat, others) {
  return stat.isDirectory() && stat.uid === process.getuid?.() && (stat.mode & others) === 0
}

if (!isMainThread) watchParent(workerData)
else if (process.env.NODE_DEBUG) {
  // Node 20 prints the whole environment when it starts a process (NODE_DEBUG=child_process), and decides so before it
  // reads this file: so start nothing. Any Node prints the headers of requests.
  process.stderr.write(
    'NODE_DEBUG is set: Node itself would print request headers and the environment, and tokens with them. Unset it\n',
  )
  process.exitCode = 2
} else if (Number.parseInt(process.versions.node, 10) >= NEEDED) {
  keepCompiledCode()
  if (process.env.ADMIN_MIRROR_PARENT) dieWithParent(process.env.ADMIN_MIRROR_PARENT)
  await import('./main.ts')
} else {
  const node = lockedNode()
  if (!node) giveUp('The locked Node is not installed here.')
  else if (process.env.ADMIN_MIRROR_NODE === node) giveUp(`The locked Node at ${node} is itself too old.`)
  else runWith(node)
}
