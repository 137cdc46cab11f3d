import fs from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { faultsOf } from '../helpers/faults.ts'
import { createScene } from '../helpers/scene.ts'
import { mustRun } from '../helpers/system.ts'
import type { Workspace } from '../helpers/workspace.ts'

// What ends real processes of query, export and snapshot: signals while SQLite computes, at the very moment in which they begin
// (the process signals itself then, so that no time counts), and a reader who reads no more.

const ENDLESS =
  'SELECT count(*) AS n FROM (WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n)'
/** A row so long that it is written at once, and after it nothing for ever. */
const ONE_ROW = `
  SELECT hex(zeroblob(50000)) AS text
  UNION ALL
  SELECT i FROM (WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n) WHERE i < 0`
const WITH_CHILD = ['query', ENDLESS, '--timeout', '10m']

/** What `node --import` loads. */
const MOMENTS = {
  // With the first listener for the signal, before any command is looked at.
  listener: `
    process.on('newListener', (name) => {
      if (name === process.env.TEST_SIGNAL) process.kill(process.pid, name)
    })`,
  // When the process that is to read has been made, before it runs anything.
  child: `
    import { subscribe } from 'node:diagnostics_channel'
    subscribe('child_process', () => process.kill(process.pid, process.env.TEST_SIGNAL))`,
}
type Moment = keyof typeof MOMENTS

let workspace: Workspace

beforeAll(async () => {
  ;({ workspace } = await createScene())
  await workspace.run(['sync'])
  for (const [moment, text] of Object.entries(MOMENTS))
    fs.writeFileSync(workspace.file(`${moment}.mjs`), text)
})

afterAll(async () => {
  // A process that reads has the environment of the command that started it.
  while (processesWith(workspace.folder).length > 0) await sleep(20)
})

/** Runs a command that signals itself at this moment. */
function signaled(args: readonly string[], moment: Moment, signal: NodeJS.Signals) {
  const env = { NODE_OPTIONS: `--import=${workspace.file(`${moment}.mjs`)}`, TEST_SIGNAL: signal }
  return workspace.run(args, { env })
}

describe.concurrent('a signal while a command begins', () => {
  it.each<[NodeJS.Signals, Moment, string[]]>([
    ['SIGINT', 'listener', WITH_CHILD],
    ['SIGTERM', 'child', WITH_CHILD],
    ['SIGTERM', 'listener', ['export', 'orders', '--format', 'csv']],
  ])('(%s with the %s) ends it, and the process that reads for it: %j', async (signal, moment, args) => {
    const ended = await signaled(args, moment, signal)
    expect(ended).toMatchObject({ code: null, signal, stdout: '', stderr: '' })
  })

  it.each<[NodeJS.Signals, Moment, number]>([
    ['SIGTERM', 'listener', 143],
    ['SIGINT', 'child', 130],
  ])('(%s with the %s) leaves the file of --output as it was', async (signal, moment, code) => {
    fs.mkdirSync(workspace.file(moment))
    fs.writeFileSync(workspace.file(`${moment}/kept.csv`), 'yesterday')

    const ended = await signaled(['query', ENDLESS, '--output', `${moment}/kept.csv`], moment, signal)

    expect(ended).toMatchObject({ code, signal: null, stdout: '' })
    expect(ended.stderr).toMatch(/^stopped; .*kept\.csv is as it was$/m)
    expect(fs.readdirSync(workspace.file(moment))).toEqual(['kept.csv'])
    expect(fs.readFileSync(workspace.file(`${moment}/kept.csv`), 'utf8')).toBe('yesterday')
  })

  it('ends a snapshot that is being made, and leaves nothing of it', async () => {
    fs.mkdirSync(workspace.file('copies'))
    const halted = faultsOf({ at: '^ANALYZE$', does: { says: 'at work', until: '/never' } })
    const snapshot = workspace.start(['snapshot', 'copies/copy.db'], { env: halted })
    await snapshot.log(({ msg }) => msg === 'at work')
    const meanwhile = fs.readdirSync(workspace.file('copies'))

    snapshot.kill('SIGINT')

    expect((await snapshot.ended).code).toBe(130)
    expect(meanwhile.length).toBeGreaterThan(0)
    expect(fs.readdirSync(workspace.file('copies'))).toEqual([])
  })

  it('ends a query that waits for its SQL', async () => {
    const pipe = workspace.file('pipe')
    mustRun('mkfifo', pipe)
    // Opened for both, so that its end never comes.
    const running = workspace.start(['query', '-'], { through: ['sh', '-c', `exec "$@" <> ${pipe}`, 'sh'] })

    // More than a pipe holds: most of it has been read.
    await fs.promises.writeFile(pipe, ' '.repeat(200_000))
    running.kill('SIGTERM')

    expect(await running.ended).toMatchObject({ code: 143, signal: null, stdout: '', stderr: '' })
  })
})

describe.concurrent('a query that SQLite computes', () => {
  it('ends in peace when nobody reads on', async () => {
    const endless = 'WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n'
    const running = workspace.start(['query', endless, '--format', 'csv'])
    await running.firstLine()

    running.closeStdout()

    expect(await running.ended).toMatchObject({ code: 0, stderr: '' })
  })

  it('is ended by a signal', async () => {
    const running = workspace.start(['query', ONE_ROW, '--format', 'csv'])
    await running.firstLine()

    running.kill('SIGTERM')

    expect(await running.ended).toMatchObject({ code: null, signal: 'SIGTERM' })
  })

  it.each<[NodeJS.Signals, string[], object]>([
    ['SIGTERM', ['--output', 'kept.csv'], { code: 143, signal: null }],
    ['SIGKILL', ['--timeout', '10m'], { code: null, signal: 'SIGKILL' }],
  ])('does not outlive its command after %s, with %j', async (signal, more, end) => {
    fs.writeFileSync(workspace.file('kept.csv'), 'yesterday')
    const running = workspace.start(['query', ENDLESS, ...more])
    const child = await readingChild(running.pid)

    running.kill(signal)

    expect(await running.ended).toMatchObject(end)
    expect(fs.readFileSync(workspace.file('kept.csv'), 'utf8')).toBe('yesterday')
    while (isAlive(child)) await sleep(20)
  })
})

/** The process that works for the command. */
async function readingChild(parent: number): Promise<number> {
  for (;;) {
    const children = fs.readFileSync(`/proc/${parent}/task/${parent}/children`, 'utf8')
    const [child] = children.split(' ').filter((pid) => pid !== '')
    if (child !== undefined) return Number(child)
    await sleep(20)
  }
}

/** A process that has ended, and that nobody asked for yet, still has its number. */
function isAlive(pid: number): boolean {
  return !/^(?:|\d+ \(.*\) Z.*)$/s.test(textOf(`/proc/${pid}/stat`))
}

function processesWith(word: string): string[] {
  const ids = fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return ids.filter((id) => textOf(`/proc/${id}/environ`).includes(word))
}

function textOf(file: string): string {
  try {
    return fs.readFileSync(file, 'latin1')
  } catch {
    // The process has ended meanwhile.
    return ''
  }
}
