#!/usr/lib/admin-mirror/bin/node
// Copies the mirror into a folder, and deletes all but the newest copies:  backup.js FOLDER KEEP
// With VACUUM INTO, since a snapshot is for readers: no sync goes on in it. Restored, such a copy goes on where it was.
import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import Database from 'better-sqlite3'

const [folder = '', keep = ''] = process.argv.slice(2)
/** What is at work: errors of SQLite name no file. */
let place = folder
try {
  backUp()
} catch (error) {
  console.error(`no backup is made; ${place}: ${String(error).replace(/^\w*Error: /, '')}`)
  process.exitCode = 1
}

function backUp() {
  if (folder === '' || !/^[1-9]\d*$/.test(keep))
    throw new Error('usage: backup.js FOLDER KEEP, which is 1 or more')
  // It holds all the data: for its owner alone.
  process.umask(0o077)
  const database = findMirror()
  fs.mkdirSync(folder, { recursive: true })
  const name = `mirror-${new Date().toISOString().replaceAll(/[:.]/g, '-')}.db`
  const unfinished = path.join(folder, 'unfinished.db')
  remove(unfinished)
  try {
    place = database
    new Database(database, { readonly: true }).prepare('VACUUM INTO ?').run(unfinished)
    place = unfinished
    const copy = new Database(unfinished, { readonly: true })
    const found = copy.pragma('quick_check', { simple: true })
    copy.close()
    if (found !== 'ok') throw new Error(`it is damaged, as ${database} may be`)
    fs.renameSync(unfinished, path.join(folder, name))
  } finally {
    // A full disk needs the room.
    remove(unfinished)
  }
  const copies = fs.readdirSync(folder).filter((file) => /^mirror-[\dTZ-]+\.db$/.test(file))
  for (const old of copies.toSorted().slice(0, -Number(keep))) fs.rmSync(path.join(folder, old))
}

function findMirror() {
  const { status, stdout, stderr } = spawnSync('admin-mirror', ['status', '--json'], { encoding: 'utf8' })
  if (status !== 0) throw new Error(stderr?.trim() || 'admin-mirror cannot be run')
  const { database } = JSON.parse(stdout)
  if (/^postgres(?:ql)?:/.test(database)) throw new Error('the mirror is on a PostgreSQL server: use pg_dump')
  return database
}

/** @param {string} file */
function remove(file) {
  for (const end of ['', '-journal']) fs.rmSync(`${file}${end}`, { force: true })
}
