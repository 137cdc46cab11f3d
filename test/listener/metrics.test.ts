import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { createCounters, metricsText } from '../../src/listener/metrics.ts'
import type { ListFacts } from '../../src/report/status.ts'
import { runs } from '../helpers/processes.ts'
import { at, failedBy, listOf, NOW, statusOf, TOKEN } from '../helpers/status.ts'

const ALERTS = path.resolve(import.meta.dirname, '../../config/prometheus-alerts.yaml')

/** Prometheus' own checker, of Debian's package of that name. */
const HAS_PROMTOOL = runs('promtool', '--version')

/** The lines of a scrape, without the prefix of all names. */
async function scrape(lists: readonly ListFacts[], counters = createCounters()): Promise<string[]> {
  const text = await metricsText(statusOf(lists), { stalled: null, unusable: null }, counters)
  return text.replaceAll('admin_mirror_', '').split('\n')
}

it('a scrape has times in seconds, 1 for what is so, and no line for what is not known', async () => {
  const counters = createCounters()
  for (const status of [200, 429, 429, null]) counters.request('acme', status)
  const lists = [
    listOf('acme', { fresh_as_of: at(1), removals_held: 12 }),
    listOf('globex', { as_of: null, ...TOKEN, ...failedBy('FORBIDDEN') }, { plan: null }),
  ]

  const lines = await scrape(lists, counters)

  const acme = 'organization="acme",collection="orders"'
  const globex = 'organization="globex",collection="orders"'
  expect(lines.filter((line) => !/^(?:#|$)/.test(line))).toEqual([
    'scheduler_ticking 1',
    'usable 1',
    `info{version="${statusOf([]).program_version}"} 1`,
    'check_exit_code 3',
    'token_held{organization="acme"} 0',
    'token_held{organization="globex"} 1',
    `last_run_failed{${acme},error_code=""} 0`,
    `last_run_failed{${globex},error_code="FORBIDDEN"} 1`,
    `rows{${acme}} 1500`,
    `rows{${globex}} 1500`,
    `as_of_timestamp_seconds{${acme}} ${(NOW - 300_000) / 1000}`,
    `fresh_as_of_timestamp_seconds{${acme}} ${(NOW - 60_000) / 1000}`,
    `overdue{${acme}} 0`,
    `removals_held_rows{${acme}} 12`,
    `removals_held_rows{${globex}} 0`,
    'requests_total{organization="acme",status="200"} 1',
    'requests_total{organization="acme",status="429"} 2',
    'requests_total{organization="acme",status="error"} 1',
  ])
})

it('a scrape has what this process did while the mirror cannot be read', async () => {
  const counters = createCounters()
  counters.request('acme', 200)

  const text = await metricsText(null, { stalled: null, unusable: 'away' }, counters)

  expect(text).toContain('usable 0\n')
  expect(text).toContain('requests_total{organization="acme",status="200"} 1\n')
})

it('a scrape keeps its format whatever a name holds', async () => {
  const lines = await scrape([listOf('a"b\\c\nd\u202e')])

  expect(lines).toContain(String.raw`rows{organization="a\"b\\c\\u{a}d\\u{202e}",collection="orders"} 1500`)
})

describe('the alert rules', () => {
  it('name metrics that a scrape has', async () => {
    const lines = await scrape([])
    const named = [...fs.readFileSync(ALERTS, 'utf8').matchAll(/\badmin_mirror_([a-z_]+[a-z])\b/g)]

    expect(named.length).toBeGreaterThan(3)
    for (const [, name] of named)
      expect(lines, name).toContainEqual(expect.stringMatching(`^# TYPE ${name} `))
  })

  it.skipIf(!HAS_PROMTOOL)('are valid', () => {
    expect(execFileSync('promtool', ['check', 'rules', ALERTS], { encoding: 'utf8' })).toContain('SUCCESS')
  })
})
