import fs from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { sandboxConfiguration, startSandbox } from '../../sandbox/server.ts'
import type { RunProgram } from '../commands.ts'
import type { Runtime } from '../runtime.ts'

/** Under the working folder, where users find it. A new demo deletes the folder of the former one. */
const DEMO_FOLDER = path.join('data', 'demo')

/** What people type: only an installed package has a command of its own. */
const COMMAND = import.meta.url.endsWith('.ts') ? 'npx admin-mirror' : 'admin-mirror'
const EXAMPLE = fileURLToPath(new URL('../../../config/admin-mirror.example.yaml', import.meta.url))

const QUESTIONS = [
  {
    asks: 'How many orders in euros are in each state, and what are they worth?',
    sql: `SELECT organizations.name AS organization, state, count(*) AS orders, round(sum(total_cents) / 100.0) AS worth
  FROM orders JOIN organizations ON organizations.id = orders._organization_id
  WHERE currency = 'EUR' GROUP BY organization, state ORDER BY organization, orders DESC`,
  },
  {
    asks: 'Which products sell best, in number? (the items of an order are a list; orders__items has a row for each)',
    sql: `SELECT sku, name, sum(quantity) AS sold, count(*) AS lines
  FROM orders__items GROUP BY sku, name ORDER BY sold DESC LIMIT 5`,
  },
  {
    asks: 'How fresh is all this, and how sure?',
    sql: 'SELECT organization, collection, rows, as_of, coverage FROM sync_status',
  },
]

/** How far the made-up world moves on, so that one more order comes. Milliseconds. */
const BETWEEN_ORDERS = 20_000

const NEWEST_ORDER = `SELECT number, state, total, _first_seen_at FROM orders
  JOIN organizations ON organizations.id = _organization_id AND name = 'acme' ORDER BY number DESC LIMIT 1`

/** `npm run demo`: from an API on this machine to answers. Leaves the mirror, but no process. */
export async function demo(runtime: Runtime, runProgram: RunProgram): Promise<number> {
  const { stdout, cwd, now } = runtime
  const folder = path.resolve(cwd, DEMO_FOLDER)
  fs.rmSync(folder, { recursive: true, force: true })
  fs.mkdirSync(path.dirname(folder), { recursive: true })
  // Throws if another user has made the folder meanwhile.
  fs.mkdirSync(folder)
  const config = path.join(DEMO_FOLDER, 'admin-mirror.yaml')
  const say = (text: string) => stdout.write(`${text}\n`)
  const type = (...words: string[]) => {
    say(`\n$ admin-mirror ${words.map(quotedWord).join(' ')} --config ${config}`)
    return runProgram([...words, '--config', path.resolve(cwd, config)], runtime)
  }

  // The made-up world stands still, so that each demo shows the same, except for the moment in which an order comes.
  const opened = now()
  let passed = 0
  const sandbox = await startSandbox({
    port: 0,
    orders: 4000,
    establishments: 40,
    organizations: 2,
    requestsPerMinute: 0,
    live: true,
    now: () => opened + passed,
  })
  try {
    fs.writeFileSync(path.resolve(cwd, config), sandboxConfiguration(sandbox, 'mirror.db'), { flag: 'wx' })
    say(`A made-up Administration API listens at ${sandbox.url} for two organizations; ${config} names them.`)
    const exitCode = await type('sync')
    if (exitCode !== 0) return exitCode
    for (const { asks, sql } of QUESTIONS) {
      say(`\n${asks}`)
      await type('query', sql)
    }
    await type('status')
    passed += BETWEEN_ORDERS
    say(
      `\nA customer of acme orders something at ${new Date(now()).toISOString()}. A refresh reads only the newest end of a list:`,
    )
    await type('sync', '--refresh', '--org', 'acme', '--collection', 'orders')
    await type('query', NEWEST_ORDER)
  } finally {
    await sandbox.close()
  }
  const nearExample = path.relative(cwd, EXAMPLE)
  const example = nearExample.startsWith('..') ? EXAMPLE : nearExample
  say(`
The mirror is one SQLite file: ${path.join(folder, 'mirror.db')}
Ask it with whatever you like:

  sqlite3 ${path.join(DEMO_FOLDER, 'mirror.db')} 'SELECT * FROM sync_status'
  ${COMMAND} query 'SELECT * FROM orders LIMIT 3' --format json --config ${config}

Then mirror your own: mkdir -p config && cp ${example} config/admin-mirror.yaml, put your organizations in, and
${COMMAND} sync`)
  return 0
}

function quotedWord(word: string): string {
  return /^[\w-]+$/.test(word) ? word : `"${word}"`
}
