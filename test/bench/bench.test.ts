import { execFile } from 'node:child_process'
import { readdirSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { tempFolder } from '../helpers/temp-folder.ts'

// Whether the benchmark runs and says all that it has to say, with lists so short that its figures mean nothing.

const RUN = path.join(import.meta.dirname, 'run.ts')

async function bench(...options: string[]) {
  const folder = tempFolder()
  const env = { PATH: process.env.PATH, HOME: process.env.HOME, TMPDIR: folder }
  const ended = promisify(execFile)(process.execPath, [RUN, ...options], { env })
  const { stdout, stderr, code } = await ended.then(
    (output) => ({ ...output, code: 0 }),
    (error: { stdout: string; stderr: string; code: number }) => error,
  )
  return { stdout, stderr, code, left: readdirSync(folder).filter((name) => name.startsWith('admin-mirror')) }
}

/** The cells of each line below the head. */
function cellsOf(table: string): string[][] {
  const lines = table.split('\n').filter((line) => line.startsWith('| '))
  return lines.slice(2).map((line) => line.slice(2, -2).split(' | '))
}

describe('the benchmark', () => {
  it('prints every row with its figures, and leaves nothing behind', { timeout: 180_000 }, async () => {
    const { stdout, stderr, code, left } = await bench('--smoke')

    expect({ code, left, stderr }).toMatchObject({ code: 0, left: [] })
    expect(stderr).toContain('  200 orders, gzip, against got loop: ')
    const cells = cellsOf(stdout)
    const counts = Map.groupBy(cells, ([scenario]) => scenario)
    expect(Object.fromEntries([...counts].map(([scenario, rows]) => [scenario, rows.length]))).toMatchObject({
      'first sync': 6,
      latency: 1,
      unchanged: 2,
      'many jobs': 1,
      'idle start': 1,
      start: 2,
      queries: 11,
      budget: 3,
    })
    const memory = cells.filter(([name]) => name === 'memory').map(([, what]) => what)
    expect(memory).toEqual(
      expect.arrayContaining([
        'peak of first sync of 200 orders',
        'last tenth of the first sync of 200 orders',
        'peak of export, 200 orders',
        'peak of query, 200 orders',
      ]),
    )
    const ratios = cells.map(([, , , , , ratio]) => Number(ratio))
    expect(ratios.filter((ratio) => !(ratio > 0 && ratio < Number.POSITIVE_INFINITY))).toEqual([])
  })

  it('runs the scenarios that are named, and tells their figures to scripts', async () => {
    const { stdout } = await bench('--smoke', '--only', 'budget', '--json')

    const { machine, rows } = JSON.parse(stdout) as { machine: object; rows: object[] }
    expect(machine).toMatchObject({ cores: expect.any(Number), versions: { Node: process.versions.node } })
    expect(rows).toHaveLength(3)
    expect(rows[0]).toMatchObject({
      scenario: 'budget',
      unit: 'requests',
      ours: [expect.any(Number)],
      others: [120],
      ratio: { median: expect.any(Number), least: expect.any(Number), most: expect.any(Number) },
    })
  })

  it.each([
    [['--only', 'nothing'], 'nothing is no scenario'],
    [['--quick', '--full'], '--quick and --full exclude each other'],
    [['--slow'], "Unknown option '--slow'"],
  ])('refuses %j, and says what it knows', async (options, complaint) => {
    const { code, stdout, stderr } = await bench(...options)

    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain(complaint)
    expect(stderr).toContain('NAME is one of: first sync, ')
  })
})
