import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { SANDBOX_MIRROR, sandboxConfiguration, startSandbox } from '../../sandbox/server.ts'
import { runProgram } from '../program.ts'
import type { Invocation } from '../runtime.ts'

/** What people type: only an installed package, in which all code lies in `dist`, has a command of its own. */
const [COMMAND, ROOT] = import.meta.url.endsWith('.ts')
  ? ['npx admin-mirror', '../../..']
  : ['admin-mirror', '..']
const EXAMPLE = fileURLToPath(new URL(`${ROOT}/config/admin-mirror.example.yaml`, import.meta.url))

const WORTH = `SELECT organizations.name AS organization, state, count(*) AS orders, round(sum(total_cents) / 100.0) AS worth
  FROM orders JOIN organizations ON organizations.id = orders._organization_id
  WHERE currency = 'EUR' GROUP BY organization, state ORDER BY organization, orders DESC`
const BEST_SELLERS = `SELECT sku, name, sum(quantity) AS sold, count(*) AS lines
  FROM orders__items GROUP BY sku, name ORDER BY sold DESC LIMIT 3`
const CHANGES = `SELECT seq, change, id, after ->> '$.number' AS number, after ->> '$.total' AS total, at
  FROM orders_changes ORDER BY seq DESC LIMIT 1`

/** How far the made-up world moves on, so that one more order comes. Milliseconds. */
const BETWEEN_ORDERS = 20_000

/** `demo`: from an API on this machine to answers. Leaves the mirror, but no process. */
export async function run(runtime: Invocation): Promise<number> {
  const { stdout, cwd, now, globals } = runtime
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'admin-mirror-demo-'))
  const config = path.join(folder, 'admin-mirror.yaml')
  const say = (text: string) => stdout.write(`\n${text}\n`)
  const type = (...words: string[]) => {
    say(`$ admin-mirror ${words.map((word) => (/^[\w-]+$/.test(word) ? word : `"${word}"`)).join(' ')}`)
    return runProgram([...words, '--config', config, ...(globals.quiet ? ['--quiet'] : [])], runtime)
  }
  // The made-up world stands still, so that each demo shows the same, except for the moment in which an order comes.
  const opened = now()
  let passed = 0
  const size = { orders: 1000, establishments: 40, organizations: 2, requestsPerMinute: 0, live: true }
  const sandbox = await startSandbox({ ...size, port: 0, now: () => opened + passed })
  try {
    fs.writeFileSync(config, sandboxConfiguration(sandbox), { mode: 0o600 })
    say(`A made-up Administration API listens at ${sandbox.url} for two organizations. ${config} names them, and each
command below is typed with --config ${config}. The first one copies their lists:`)
    const exitCode = await type('sync')
    if (exitCode !== 0) return exitCode
    say('What are the orders in euros worth?')
    await type('query', WORTH)
    say('Which products sell best? The items of an order are a list; orders__items has a row for each:')
    await type('query', BEST_SELLERS)
    passed += BETWEEN_ORDERS
    say('A customer of acme orders something. A refresh reads only the newest end of a list:')
    await type('sync', '--refresh', '--org', 'acme', '--collection', 'orders')
    say('What has changed?')
    await type('query', CHANGES)
    say('How fresh is all this?')
    await type('status')
  } finally {
    await sandbox.close()
  }
  say(`The mirror is one SQLite file, for whatever tool you like:

  sqlite3 ${path.join(folder, SANDBOX_MIRROR)} 'SELECT * FROM sync_status'

Go on with your own API: copy the example, put its address, your organizations and their tokens in, see whether all is right, and
copy the lists:

  mkdir -p config && cp ${path.relative(cwd, EXAMPLE)} config/admin-mirror.yaml
  ${COMMAND} check
  ${COMMAND} sync`)
  return 0
}
