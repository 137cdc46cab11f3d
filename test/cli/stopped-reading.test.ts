import fs from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { mustRun } from '../helpers/system.ts'
import { items, pageOf, serve } from './list-server.ts'
import { createWorkspace, organization, type Workspace } from './workspace.ts'

// Signals that come while query, export or describe begin. The process signals itself at that very moment, so that no time counts.

const ENDLESS =
  'SELECT count(*) AS n FROM (WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n)'

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

const SIGNALS = [
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const

let workspace: Workspace

beforeAll(async () => {
  const server = await serve((asked) => pageOf(items(2), asked))
  workspace = createWorkspace({ baseUrl: server.url, organizations: [organization('acme', 1)] })
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

function processesWith(word: string): string[] {
  const ids = fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return ids.filter((id) => environmentOf(id).includes(word))
}

function environmentOf(pid: string): string {
  try {
    return fs.readFileSync(`/proc/${pid}/environ`, 'latin1')
  } catch {
    return ''
  }
}

describe.concurrent.each(SIGNALS)('%s while a command begins', (signal, code) => {
  it.each(['listener', 'child'] as const)(
    'ends it, and the process that reads for it: with the %s',
    async (moment) => {
      const ended = await signaled(['query', ENDLESS, '--timeout', '10m'], moment, signal)
      expect(ended).toMatchObject({ code: null, signal, stdout: '', stderr: '' })
    },
  )

  it.each([[['query', ENDLESS]], [['export', 'orders', '--format', 'csv']], [['describe']]])(
    'ends it where it needs no process of its own: %j',
    async (args) => {
      const ended = await signaled(args, 'listener', signal)
      expect(ended).toMatchObject({ code: null, signal, stdout: '', stderr: '' })
    },
  )

  it.each(['listener', 'child'] as const)(
    'leaves the file of --output as it was: with the %s',
    async (moment) => {
      const folder = workspace.file(`${signal}-${moment}`)
      fs.mkdirSync(folder)
      fs.writeFileSync(`${folder}/kept.csv`, 'yesterday')

      const ended = await signaled(['query', ENDLESS, '--output', `${folder}/kept.csv`], moment, signal)

      expect(ended).toMatchObject({ code, signal: null, stdout: '' })
      expect(ended.stderr).toMatch(/^stopped; .*kept\.csv is as it was$/m)
      expect(fs.readdirSync(folder)).toEqual(['kept.csv'])
      expect(fs.readFileSync(`${folder}/kept.csv`, 'utf8')).toBe('yesterday')
    },
  )

  it('ends a query that waits for its SQL', async () => {
    const pipe = workspace.file(`${signal}.pipe`)
    mustRun('mkfifo', pipe)
    // Opened for both, so that its end never comes.
    const running = workspace.start(['query', '-'], { through: ['sh', '-c', `exec "$@" <> ${pipe}`, 'sh'] })

    // More than a pipe holds: most of it has been read.
    await fs.promises.writeFile(pipe, ' '.repeat(200_000))
    running.kill(signal)

    expect(await running.ended).toMatchObject({ code, signal: null, stdout: '', stderr: '' })
  })
})
