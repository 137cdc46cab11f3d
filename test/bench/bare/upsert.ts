import process from 'node:process'
import Database from 'better-sqlite3'
import { followWithGot, HEADERS } from './follow.ts'

// What an export of an afternoon does: got, and the JSON of each item into one table, a transaction a page.

const [list = '', file = ''] = process.argv.slice(2)
const database = new Database(file)
database.pragma('journal_mode = WAL')
database.pragma('synchronous = NORMAL')
database.exec(
  'CREATE TABLE IF NOT EXISTS orders (organization_id TEXT, id INTEGER, json TEXT, PRIMARY KEY (organization_id, id))',
)
const upsert = database.prepare(`
  INSERT INTO orders (organization_id, id, json)
  VALUES (?, ?, ?)
  ON CONFLICT (organization_id, id) DO UPDATE SET json = excluded.json
`)
const savePage = database.transaction((data: readonly { id: number }[]) => {
  for (const item of data) upsert.run(HEADERS['x-service-organization'], item.id, JSON.stringify(item))
})

let items = 0
await followWithGot(list, ({ data }) => {
  savePage(data)
  items += data.length
})
database.close()
process.stdout.write(`${items}\n`)
