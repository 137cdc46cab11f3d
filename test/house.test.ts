import fs from 'node:fs'
import path from 'node:path'
import { expect, it } from 'vitest'

// The plan of the house: who may import whom, so that each room can be understood, tested and replaced alone.

const SOURCE = path.resolve(import.meta.dirname, '../src')

const TEXTS = new Map(
  fs
    .readdirSync(SOURCE, { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.(ts|js)$/.test(file))
    .map((file) => [file, fs.readFileSync(path.join(SOURCE, file), 'utf8')]),
)

const IMPORT =
  /(?:import|export)\s+(type\s)?(?:[^'"()]*?\sfrom\s+)?'([^']+)'|(?:import|require)\('([^']+)'\)/g

const IMPORTS = [...TEXTS].flatMap(([from, text]) =>
  [...text.matchAll(IMPORT)].map(([, type, stated, dynamic]) => {
    const named = stated ?? dynamic ?? ''
    const to = named.startsWith('.') ? path.posix.join(path.posix.dirname(from), named) : named
    return { from, to, isType: type !== undefined, isDynamic: dynamic !== undefined }
  }),
)

const roomOf = (file: string) => file.split('/')[0] ?? ''

/** What each room may import of ours beside itself; `type:` where only types may cross. */
const MAY_IMPORT: Record<string, string> = {
  'bin.js': 'main.ts',
  'main.ts': 'cli',
  'errors.ts': '',
  'text.ts': '',
  'clock.ts': '',
  json: '',
  config: 'schedule',
  schedule: 'clock.ts text.ts',
  sync: 'clock.ts errors.ts text.ts json',
  api: 'errors.ts text.ts json type:sync',
  store: 'errors.ts text.ts json type:sync type:schedule',
  report: 'clock.ts errors.ts text.ts sync type:store',
  listener: 'errors.ts text.ts report type:store',
  ping: '',
  sandbox: '',
  cli: 'errors.ts text.ts json config schedule sync api store report listener ping sandbox',
}

it('each room imports only what the plan allows', () => {
  const strangers = IMPORTS.filter(({ from, to, isType }) => {
    const allowed = MAY_IMPORT[roomOf(from)]?.split(' ') ?? []
    const isAllowed = allowed.includes(roomOf(to)) || (isType && allowed.includes(`type:${roomOf(to)}`))
    return TEXTS.has(to) && roomOf(to) !== roomOf(from) && !isAllowed
  })

  expect(IMPORTS.length).toBeGreaterThan(500)
  expect(strangers).toEqual([])
})

it('the columns know neither store, and that of a file nothing of a server', () => {
  const crossing = IMPORTS.filter(
    ({ from, to }) =>
      (from.startsWith('store/columns/') && /^store\/(?:sqlite|postgres)\//.test(to)) ||
      (from.startsWith('store/sqlite/') && to.startsWith('store/postgres/')),
  )

  expect(crossing).toEqual([])
})

const OF_A_SERVER =
  /^store\/postgres\/|^cli\/(?:commands\/move|postgres|start-sharing)\.ts$|^pg(?:-boss)?$|^schedule\/workers\.ts$/

it('nothing of PostgreSQL is loaded where the mirror is a file', () => {
  const entries = IMPORTS.filter(
    ({ from, to, isDynamic }) => isDynamic && ![from, to].some((file) => OF_A_SERVER.test(file)),
  )
  const reached = new Set(['main.ts', ...entries.map(({ to }) => to)])
  const stated = IMPORTS.filter(({ isDynamic, isType }) => !isDynamic && !isType)
  for (const file of reached) for (const { from, to } of stated) if (from === file) reached.add(to)

  expect(reached.size).toBeGreaterThan(50)
  expect([...reached].filter((file) => OF_A_SERVER.test(file))).toEqual([])
})

it.each([
  [
    'touch the process, the clock and chance',
    /\bprocess\.(env|argv|exit|on|std|pid|kill)|\bDate\.now\(|new Date\(\)|Math\.random\(|\bset(Timeout|Interval)\(/,
    ['bin.js', 'main.ts'],
  ],
  ['change a mirror by what SQLite does not promise', /unsafeMode|writable_schema|rootpage/i, []],
  // Its errors hold the headers of the request, and so the token.
  ['import got', /^import (?!type).* from 'got'/m, ['api/http.ts', 'ping/pings.ts']],
])('only these files %s', (_what, pattern, allowed) => {
  const found = [...TEXTS].flatMap(([file, text]) => (pattern.test(text) ? [file] : []))

  expect(found.toSorted()).toEqual(allowed)
})
