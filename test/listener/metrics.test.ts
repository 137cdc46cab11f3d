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
  const text = await metricsText(statusOf(lists), { stalled: null, unusable: null }, counters)
  const { types, samples } = parseScrape(text)
  const value = (name: string, labels: Record<string, string> = {}) =>
    samples.find(
      (sample) =>
        sample.name === `admin_mirror_${name}` &&
        Object.entries(labels).every(([label, wanted]) => sample.labels[label] === wanted),
    )?.value
  return { text, types, samples, value }
}

const ACME = { organization: 'acme', collection: 'orders' }
const FULL = [
  listOf('acme', { fresh_as_of: at(1), removals_held: 12 }),
  listOf('globex', { held_since: at(50), ...failedBy('UNAUTHORIZED') }),
]

describe('a scrape', () => {
  it('has times in seconds, and 1 for what is so', async () => {
    const counters = createCounters()
    for (const status of [200, 429, 429, null]) counters.request('acme', status)
    const { value } = await scrape(FULL, counters)

    expect(value('rows', ACME)).toBe(1500)
    expect(value('as_of_timestamp_seconds', ACME)).toBe((NOW - 300_000) / 1000)
    expect(value('fresh_as_of_timestamp_seconds', ACME)).toBe((NOW - 60_000) / 1000)
    expect(value('removals_held_rows', ACME)).toBe(12)
    expect(value('token_held', { organization: 'acme' })).toBe(0)
    expect(value('token_held', { organization: 'globex' })).toBe(1)
    expect(value('last_run_failed', { organization: 'globex', error_code: 'UNAUTHORIZED' })).toBe(1)
    expect(value('last_run_failed', ACME)).toBe(0)
    expect(value('overdue', ACME)).toBe(0)
    expect(value('requests_total', { organization: 'acme', status: '429' })).toBe(2)
    expect(value('requests_total', { organization: 'acme', status: 'error' })).toBe(1)
    expect(value('check_exit_code')).toBe(3)
    expect([value('scheduler_ticking'), value('usable')]).toEqual([1, 1])
  })

  it('leaves out what is not known, so that no list looks as if it were of 1970', async () => {
    const { samples } = await scrape([listOf('acme', { as_of: null, fresh_as_of: null })])

    expect(samples.filter(({ name }) => name.includes('as_of'))).toEqual([])
  })

  it('keeps its format whatever a name holds', async () => {
    const { samples } = await scrape([listOf('a"b\\c\nd', {}), listOf('ac\u202eme')])

    expect(samples.find(({ name }) => name === 'admin_mirror_rows')?.labels.organization).toBe(
      'a"b\\c\\u{a}d',
    )
    expect(JSON.stringify(samples)).not.toContain('\u202e')
  })
})

describe('the alert rules', () => {
  it('name metrics that a scrape has', async () => {
    const { types } = await scrape(FULL)
    const names = new Set(fs.readFileSync(ALERTS, 'utf8').match(/\badmin_mirror_[a-z_]+[a-z]\b/g))

    expect(names.size).toBeGreaterThan(3)
    expect([...names].filter((name) => !types.has(name))).toEqual([])
  })

  it.skipIf(!HAS_PROMTOOL)('are valid', () => {
    expect(execFileSync('promtool', ['check', 'rules', ALERTS], { encoding: 'utf8' })).toContain('SUCCESS')
  })
})
