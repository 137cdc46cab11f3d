import fs from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'

// The plan of the house: who may import whom, so that each room can be understood, tested and replaced alone.

const SOURCE = path.resolve(import.meta.dirname, '../src')

interface Import {
  from: string
  to: string
  typeOnly: boolean
  isDynamic: boolean
}

const files = fs
  .readdirSync(SOURCE, { recursive: true, encoding: 'utf8' })
  .filter((file) => /\.(ts|js)$/.test(file))
  .map((file) => file.replaceAll(path.sep, '/'))

const texts = new Map(files.map((file) => [file, fs.readFileSync(path.join(SOURCE, file), 'utf8')]))

const imports: Import[] = files.flatMap((file) => {
  const text = texts.get(file) ?? ''
  const statements = text.matchAll(
    /(?:import|export)\s+(type\s)?(?:[^'"()]*?\sfrom\s+)?'([^']+)'|(?:import|require)\('([^']+)'\)/g,
  )
  return [...statements].map(([, type, stated, dynamic]) => ({
    from: file,
    to: resolveImport(file, stated ?? dynamic ?? ''),
    typeOnly: type !== undefined,
    isDynamic: dynamic !== undefined,
  }))
})

function resolveImport(from: string, specifier: string): string {
  return specifier.startsWith('.')
    ? path.posix.normalize(path.posix.join(path.posix.dirname(from), specifier))
    : specifier
}

function ofPostgres(file: string): boolean {
  return /^store\/postgres\/|^cli\/(?:commands\/move|postgres|start-sharing)\.ts$|^pg(?:-boss)?$|^schedule\/workers\.ts$/.test(
    file,
  )
}

function room(file: string): string {
  return file.includes('/') ? file.slice(0, file.indexOf('/')) : file
}

/** What each room may import of ours beside itself; `type:` where only types may cross. */
const MAY_IMPORT: Record<string, string[]> = {
  'bin.js': ['main.ts'],
  'main.ts': ['cli'],
  'errors.ts': [],
  'text.ts': [],
  'clock.ts': [],
  'loopback.ts': [],
  json: [],
  config: ['loopback.ts', 'schedule'],
  schedule: ['clock.ts', 'text.ts'],
  sync: ['clock.ts', 'errors.ts', 'text.ts', 'json'],
  api: ['errors.ts', 'text.ts', 'json', 'type:sync'],
  store: ['errors.ts', 'text.ts', 'json', 'type:sync', 'type:schedule'],
  report: ['clock.ts', 'errors.ts', 'text.ts', 'sync', 'type:store'],
  listener: ['errors.ts', 'text.ts', 'loopback.ts', 'report', 'type:store'],
  ping: [],
  sandbox: [],
  cli: [
    'errors.ts',
    'text.ts',
    'json',
    'config',
    'schedule',
    'sync',
    'api',
    'store',
    'report',
    'listener',
    'ping',
    'sandbox',
  ],
}

describe('the house', () => {
  it('has files and imports to look at', () => {
    expect(files.length).toBeGreaterThan(60)
    expect(imports.length).toBeGreaterThan(200)
  })

  it.each(Object.keys(MAY_IMPORT))('%s imports only what the plan allows', (name) => {
    const allowed = MAY_IMPORT[name] ?? []

    const strangers = imports
      .filter(({ from, to }) => room(from) === name && texts.has(to) && room(to) !== name)
      .filter(
        ({ to, typeOnly }) =>
          !allowed.includes(room(to)) && !(typeOnly && allowed.includes(`type:${room(to)}`)),
      )

    expect(strangers).toEqual([])
  })

  it('keeps the two halves of the store apart, so that a second store can use the columns', () => {
    const crossing = imports.filter(
      ({ from, to }) =>
        (from.startsWith('store/columns/') && /^store\/(?:sqlite|postgres)\//.test(to)) ||
        (from.startsWith('store/sqlite/') && to.startsWith('store/postgres/')),
    )

    expect(crossing).toEqual([])
  })

  it('loads nothing of PostgreSQL where the mirror is a file', () => {
    const reached = new Set(['main.ts'])
    const stated = [...imports].filter(({ isDynamic, typeOnly }) => !isDynamic && !typeOnly)
    const entries = imports.filter(
      ({ from, to, isDynamic }) => isDynamic && !ofPostgres(from) && !ofPostgres(to),
    )
    for (const { to } of entries) reached.add(to)
    for (const file of reached) for (const { from, to } of stated) if (from === file) reached.add(to)

    expect(reached.size).toBeGreaterThan(50)
    expect([...reached].filter(ofPostgres)).toEqual([])
  })

  it('has no room that the plan does not know', () => {
    expect([...new Set(files.map(room))].filter((name) => !(name in MAY_IMPORT))).toEqual([])
  })

  it.each([
    ['got', 'api/http.ts ping/pings.ts'],
    ['p-retry', 'api/retry.ts'],
    ['node-cron', 'schedule/cron.ts'],
    ['better-sqlite3', 'store/sqlite/open.ts'],
    ['pino', 'cli/output/log.ts'],
    ['pg', 'store/postgres/connections.ts store/postgres/query.ts'],
    ['pg-boss', 'store/postgres/queue.ts'],
    ['@hono/node-server', 'listener/server.ts'],
    ['log-update', 'cli/output/log.ts'],
    ['prom-client', 'listener/metrics.ts'],
    ['hyparquet-writer', 'cli/output/parquet.ts'],
  ])('%s is imported only by %s', (library, importer) => {
    const importers = imports
      .filter(({ to, typeOnly }) => to === library && !typeOnly)
      .map(({ from }) => from)

    expect([...new Set(importers)].join(' ')).toBe(importer)
  })

  it('touches the process, the clock and chance only where a process begins', () => {
    const beginnings = ['main.ts', 'bin.js']
    const outside = files.filter((file) => !beginnings.includes(file))

    const reaching = outside.filter((file) =>
      /\bprocess\.(env|argv|exit|on|std|pid|kill)|\bDate\.now\(|new Date\(\)|Math\.random\(|\bset(Timeout|Interval)\(/.test(
        texts.get(file) ?? '',
      ),
    )

    expect(reaching).toEqual([])
  })

  it('changes the mirror by documented features of SQLite alone', () => {
    const unsafe = files.filter((file) => /unsafeMode|writable_schema|rootpage/i.test(texts.get(file) ?? ''))

    expect(unsafe).toEqual([])
  })

  it('imports with the whole name of the file, and from no barrel', () => {
    const unclear = imports.filter(
      ({ to }) => to.endsWith('/index.ts') || (/^\.|\//.test(to) && texts.has(`${to}.ts`)),
    )

    expect(unclear).toEqual([])
  })
})
