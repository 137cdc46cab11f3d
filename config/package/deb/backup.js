#!/usr/lib/admin-mirror/bin/node
// Copies the mirror into a folder, and deletes all but the newest copies:  backup.js FOLDER KEEP
// With VACUUM INTO, since a snapshot is for readers: no sync goes on in it. Restored, such a copy goes on where it was.
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import Database from 'better-sqlite3'

const [folder = '', keep = ''] = process.argv.slice(2)
if (folder === '' || !/^[1-9]\d*$/.test(keep))
  throw new Error('usage: backup.js FOLDER KEEP, which is 1 or more')

// It holds all the data: for its owner alone.
process.umask(0o077)
const { database } = JSON.parse(execFileSync('admin-mirror', ['status', '--json'], { encoding: 'utf8' }))
if (/^postgres(?:ql)?:/.test(database)) throw new Error('the mirror is on a PostgreSQL server: use pg_dump')
fs.mkdirSync(folder, { recursive: true })
const name = `mirror-${new Date().toISOString().replaceAll(/[:.]/g, '-')}.db`
const unfinished = path.join(folder, 'unfinished.db')
fs.rmSync(unfinished, { force: true })
new Database(database, { readonly: true }).prepare('VACUUM INTO ?').run(unfinished)
const copy = new Database(unfinished, { readonly: true })
if (copy.pragma('quick_check', { simple: true }) !== 'ok')
  throw new Error(`${unfinished} is damaged, as ${database} may be`)
copy.close()
fs.renameSync(unfinished, path.join(folder, name))

const copies = fs.readdirSync(folder).filter((file) => /^mirror-[\dTZ-]+\.db$/.test(file))
for (const old of copies.toSorted().slice(0, -Number(keep))) fs.rmSync(path.join(folder, old))
