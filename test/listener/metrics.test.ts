import { execFileSync, spawnSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { createCounters, metricsText } from '../../src/listener/metrics.ts'
import type { ListFacts } from '../../src/report/status.ts'
import { at, failedBy, listOf, NOW, statusOf } from '../helpers/status.ts'
import { parseScrape } from './exposition.ts'

const ALERTS = path.resolve(import.meta.dirname, '../../config/prometheus-alerts.yaml')

/** Prometheus' own checker, of Debian's package of that name. */
const HAS_PROMTOOL = spawnSync('promtool', ['--version'], { stdio: 'ignore' }).status === 0

async function scrape(lists: readonly ListFacts[], counters = createCounters()) {
  return parseScrape(await metricsText(statusOf(lists), { stalled: null, unusable: null }, counters))
}

describe('a scrape', () => {
  it('has times in seconds, 1 for what is so, and no line for what is not known', async () => {
    const counters = createCounters()
    for (const status of [200, 429, 429, null]) counters.request('acme', status)

    const { samples } = await scrape(
      [
        listOf('acme', { fresh_as_of: at(1), removals_held: 12 }),
        listOf('globex', { as_of: null, held_since: at(50), ...failedBy('UNAUTHORIZED') }),
      ],
      counters,
    )

    const acme = { organization: 'acme', collection: 'orders' }
    const globex = { organization: 'globex', collection: 'orders' }
    const expected: [name: string, labels: object, value: number][] = [
      ['scheduler_ticking', {}, 1],
      ['usable', {}, 1],
      ['info', { version: statusOf([]).program_version }, 1],
      ['check_exit_code', {}, 3],
      ['token_held', { organization: 'acme' }, 0],
      ['token_held', { organization: 'globex' }, 1],
      ['last_run_failed', { ...acme, error_code: '' }, 0],
      ['last_run_failed', { ...globex, error_code: 'UNAUTHORIZED' }, 1],
      ['rows', acme, 1500],
      ['rows', globex, 1500],
      ['as_of_timestamp_seconds', acme, (NOW - 300_000) / 1000],
      ['fresh_as_of_timestamp_seconds', acme, (NOW - 60_000) / 1000],
      ['overdue', acme, 0],
      ['overdue', globex, 0],
      ['removals_held_rows', acme, 12],
      ['removals_held_rows', globex, 0],
      ['requests_total', { organization: 'acme', status: '200' }, 1],
      ['requests_total', { organization: 'acme', status: '429' }, 2],
      ['requests_total', { organization: 'acme', status: 'error' }, 1],
    ]
    expect(samples).toEqual(
      expected.map(([name, labels, value]) => ({ name: `admin_mirror_${name}`, labels, value })),
    )
  })

  it('keeps its format whatever a name holds', async () => {
    const { samples } = await scrape([listOf('a"b\\c\nd\u202e')])

    expect(samples.find(({ name }) => name === 'admin_mirror_rows')?.labels.organization).toBe(
      'a"b\\c\\u{a}d\\u{202e}',
    )
  })
})

describe('the alert rules', () => {
  it('name metrics that a scrape has', async () => {
    const { types } = await scrape([])
    const names = new Set(fs.readFileSync(ALERTS, 'utf8').match(/\badmin_mirror_[a-z_]+[a-z]\b/g))

    expect(names.size).toBeGreaterThan(3)
    expect([...names].filter((name) => !types.has(name))).toEqual([])
  })

  it.skipIf(!HAS_PROMTOOL)('are valid', () => {
    expect(execFileSync('promtool', ['check', 'rules', ALERTS], { encoding: 'utf8' })).toContain('SUCCESS')
  })
})
