import { execFileSync } from 'node:child_process'
import path from 'node:path'
import { expect, it } from 'vitest'

// Whether the benchmark runs and prints every row, with lists so short that its figures mean nothing.

it('the benchmark prints a row for each comparison', { timeout: 600_000 }, () => {
  const run = path.join(import.meta.dirname, 'run.ts')
  const stdout = execFileSync(process.execPath, [run, '--orders', '60', '--rounds', '1'], {
    encoding: 'utf8',
  })

  const rows = stdout.split('\n').filter((line) => /^\| (?!measured|---)/.test(line))
  expect(rows).toHaveLength(9)
  expect(stdout).toMatch(/\| got loop \| \d+ \/ \d+ = [\d.]+ \(/)
})
