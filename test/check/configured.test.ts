import fs from 'node:fs'
import path from 'node:path'
import { expect, it } from 'vitest'
import { checkReadable, checkSchedules, minutesBetween, suspiciousNames } from '../../src/check/configured.ts'
import { mustRun } from '../helpers/system.ts'
import { tempFolder } from '../helpers/temp-folder.ts'

it.each<[mode: number, tokens: string[], warns: boolean]>([
  [0o644, ['acme'], true],
  [0o604, ['acme', 'globex'], true],
  [0o640, ['acme'], false],
  [0o600, ['acme'], false],
  [0o644, [], false],
])('a configuration with mode %o and tokens of %j is warned of: %s', (mode, literalTokens, warns) => {
  const file = path.join(tempFolder(), "it's here.yaml")
  fs.writeFileSync(file, '')
  fs.chmodSync(file, mode)

  const findings = checkReadable({ file, literalTokens })

  expect(findings).toHaveLength(Number(warns))
  if (!warns) return
  const [, command = ''] = /^type: (.*?); or /.exec(findings[0]?.cure ?? '') ?? []
  mustRun('sh', '-c', command)
  expect(fs.statSync(file).mode & 0o007).toBe(0)
})

it('a name of a collection is asked about where it is close to a known one, and is not that', () => {
  const findings = suspiciousNames(['orders', 'order', 'visits', 'establishment'].map((name) => ({ name })))

  expect(findings.map(({ state, cure }) => `${state}: ${cure}`)).toEqual([
    'warn: is orders meant? Then write orders instead of order',
    'warn: is establishments meant? Then write establishments instead of establishment',
  ])
})

it('the next times of each schedule are told once, by the clock of its zone, and for whom', () => {
  const [daily, never] = ['0 3 * * *', '0 0 29 2 *']
  const organizations = [
    { name: 'acme', schedule: daily },
    { name: 'globex', schedule: daily },
    { name: 'initech', schedule: never },
  ]
  const now = Date.UTC(2026, 10, 20)

  expect(checkSchedules({ organizations, timezone: 'Europe/Berlin' }, now)).toMatchObject([
    {
      state: 'ok',
      message: `"${daily}" of 2 organizations: next 2026-11-20 03:00:00, 2026-11-21 03:00:00, 2026-11-22 03:00:00 (Europe/Berlin)`,
    },
    { state: 'warn', message: `"${never}" of initech does not run within a year` },
  ])
  expect(minutesBetween('0 3,4 * * *', 'UTC', now)).toBe(60)
  expect(minutesBetween(never, 'UTC', now)).toBeNull()
})
