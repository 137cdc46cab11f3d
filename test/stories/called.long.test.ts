import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import type { Status } from '../../src/report/status.ts'
import { createWorkspace } from '../helpers/workspace.ts'

// A new operator types what config/DEPLOYMENT.md says, and is told of a revoked token, held removals and a killed daemon within a
// minute each. The one test that measures time: that minute is the promise. It takes half of it here.

const ROOT = path.resolve(import.meta.dirname, '../..')
const WITHIN_MS = 60_000

const HAS_CURL = spawnSync('curl', ['--version'], { stdio: 'ignore' }).status === 0
if (!HAS_CURL) process.stderr.write('the test of what operators type is skipped: curl is not installed\n')

const running: ChildProcess[] = []

afterAll(() => {
  for (const { pid, exitCode } of running) if (pid !== undefined && exitCode === null) endGroup(pid)
})

function endGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // Each of its processes has ended.
  }
}

/** The commands of each block of the section. */
function typedBlocks(): string[] {
  const text = fs.readFileSync(path.join(ROOT, 'config/DEPLOYMENT.md'), 'utf8')
  const [, section = ''] = /^## Be alerted within a minute$(.*?)^## /ms.exec(text) ?? []
  return [...section.matchAll(/^```console\n(.*?)^```$/gms)].map(([, typed = '']) =>
    typed.replaceAll(/^\$ /gm, ''),
  )
}

/** The command, as where it is installed. */
const COMMAND = `alias admin-mirror='"${path.join(ROOT, 'node_modules/.bin/node')}" "${path.join(ROOT, 'src/bin.js')}"'\n`

/** Types it in a shell. `shows` resolves with the time at which the output holds a text, `finds` with what a pattern captures. */
function terminal(typed: string, cwd: string) {
  const env = { PATH: process.env.PATH ?? '', HOME: process.env.HOME ?? '' }
  const shell = spawn('sh', ['-c', `exec 2>&1\n${COMMAND}${typed}`], { cwd, env, detached: true })
  running.push(shell)
  let output = ''
  const watchers = new Set<() => void>()
  shell.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text
    for (const watch of watchers) watch()
  })
  const ended = new Promise<string>((resolve) => shell.once('close', () => resolve(output)))
  const found = <T>(look: () => T | undefined, what: string) =>
    new Promise<T>((resolve, reject) => {
      const watch = () => {
        const value = look()
        if (value !== undefined) resolve(value)
      }
      watchers.add(watch)
      watch()
      void ended.then(() => reject(new Error(`It ended without ${what}:\n${output}`)))
    })
  const shows = (text: string) => found(() => (output.includes(text) ? Date.now() : undefined), text)
  const finds = (pattern: RegExp) => found(() => pattern.exec(output)?.[1], String(pattern))
  return { shows, finds, ended }
}

describe.runIf(HAS_CURL)('an operator who types what the documents say', () => {
  it('is told of a revoked token, held removals and a killed daemon within a minute each', async () => {
    const { folder, run } = createWorkspace()
    const blocks = typedBlocks()
    const [sandbox = '', start = '', watch = '', trouble = ''] = blocks
    // Each takes a port that is free, and says which.
    const api = await terminal(sandbox.replace('8080', '0'), folder).finds(/"url":"http:[^"]*:(\d+)"/)
    const port = await terminal(start.replace('9464', '0'), folder).finds(/"url":"http:[^"]*:(\d+)\/?"/)
    const placed = (typed: string) => typed.replaceAll('8080', api).replaceAll('9464', port)
    const watching = terminal(placed(watch), folder)
    await watching.shows('ok')

    const troubleAt = Date.now()
    const asked = await terminal(placed(trouble), folder).ended
    const heldAt = await watching.shows('held for a refused token')
    const heldBackAt = await watching.shows('with removals held back')
    const config = ['--config', 'data/sandbox.yaml']
    const { stdout } = await run(['status', '--json', ...config])
    const [daemon] = (JSON.parse(stdout) as Status).daemon.processes
    const killedAt = Date.now()
    process.kill(daemon?.pid ?? 0, 'SIGKILL')
    const goneAt = await watching.shows('curl: (7)')

    expect(blocks).toHaveLength(4)
    // curl shows its progress, too, where nobody looks.
    expect(asked).toContain('acme: its token is refused from now on\n')
    expect(asked).toContain('globex: the older half of its orders is gone\n')
    expect(heldAt - troubleAt).toBeLessThan(WITHIN_MS)
    expect(heldBackAt - troubleAt).toBeLessThan(WITHIN_MS)
    expect(goneAt - killedAt).toBeLessThan(WITHIN_MS)
    const after = await run(['status', '--check', ...config])
    expect(after.code).toBe(3)
    expect(after.stdout).toContain('died without being stopped')
  }, 300_000)
})
