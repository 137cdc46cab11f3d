import { execFile } from 'node:child_process'
import { chmodSync, readdirSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { tempFolder } from '../helpers/temp-folder.ts'

// Whether the benchmark runs and prints every row, with lists so short that its figures mean nothing.

const RUN = path.join(import.meta.dirname, 'run.ts')

async function bench(...options: string[]) {
  const folder = tempFolder()
  // As root, a PostgreSQL server runs under a user of its own.
  chmodSync(folder, 0o755)
  const env = { PATH: process.env.PATH, HOME: process.env.HOME, TMPDIR: folder }
  const ended = promisify(execFile)(process.execPath, [RUN, ...options], { env })
  const { stdout, stderr, code } = await ended.then(
    (output) => ({ ...output, code: 0 }),
    (error: { stdout: string; stderr: string; code: number }) => error,
  )
  return { stdout, stderr, code, left: readdirSync(folder).filter((name) => name.startsWith('admin-mirror')) }
}

describe('the benchmark', () => {
  it('prints every row with its figures, and leaves nothing behind', { timeout: 600_000 }, async () => {
    const { stdout, stderr, code, left } = await bench('--orders', '60', '--rounds', '1')

    expect({ code, left, stderr }).toMatchObject({ code: 0, left: [] })
    const cells = stdout.split('\n').filter((line) => line.startsWith('| '))
    const rows = cells.slice(2).map((line) => line.slice(2, -2).split(' | '))
    const counts = Map.groupBy(rows, ([scenario]) => scenario)
    expect([...counts].map(([scenario, { length }]) => [scenario, length])).toEqual([
      ['first sync', 4],
      ['latency', 1],
      ['unchanged', 1],
      ['many jobs', 1],
      ['start', 2],
      ['publishing', 1],
      ['queries', 4],
      ['postgres', 20],
    ])
    const ratios = rows.map(([, , , , , ratio]) => Number(ratio))
    expect(ratios.filter((ratio) => !(ratio > 0 && ratio < Number.POSITIVE_INFINITY))).toEqual([])
  })
})
