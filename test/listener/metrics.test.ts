import { execFileSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { metricsText } from '../../src/listener/metrics.ts'
import type { Overview } from '../../src/listener/overview.ts'
import { parseScrape } from './exposition.ts'
import { full, job, NOW, overview } from './overviews.ts'
import { HAS_PROMTOOL } from './promtool.ts'

const WELL = { stalled: null, unusable: null }

async function scrape(known: Overview, health = WELL as Parameters<typeof metricsText>[1]) {
  const { types, samples } = parseScrape(await metricsText(known, health))
  const value = (name: string, labels: Record<string, string> = {}) =>
    samples.find(
      (sample) =>
        sample.name === `admin_mirror_${name}` &&
        Object.entries(labels).every(([label, text]) => sample.labels[label] === text),
    )?.value
  return { types, samples, value }
}

const ACME = { organization: 'acme', collection: 'orders' }

describe('a scrape', () => {
  it('has times in seconds, ratios from 0 to 1, and 1 for what is so', async () => {
    const { value } = await scrape(full())

    expect(value('rows', ACME)).toBe(1500)
    expect(value('as_of_timestamp_seconds', ACME)).toBe((NOW - 300_000) / 1000)
    expect(value('last_success_timestamp_seconds', ACME)).toBe((NOW - 240_000) / 1000)
    expect(value('fresh_as_of_timestamp_seconds', ACME)).toBe((NOW - 60_000) / 1000)
    expect(value('waiting_until_timestamp_seconds', ACME)).toBe(NOW / 1000 + 30)
    expect(value('last_run_seconds', ACME)).toBe(61.5)
    expect(value('last_refresh_seconds', ACME)).toBe(0.25)
    expect(value('walk_progress_ratio', ACME)).toBe(0.44)
    expect(value('coverage', { ...ACME, coverage: 'steady' })).toBe(1)
    expect(value('removals_held_rows', ACME)).toBe(12)
    expect(value('token_held', { organization: 'acme' })).toBe(0)
    expect(value('token_held', { organization: 'globex' })).toBe(1)
    expect(value('last_run_failed', { organization: 'globex', error_code: 'UNAUTHORIZED' })).toBe(1)
    expect(value('overdue', { organization: 'globex' })).toBe(1)
    expect(value('requests_total', { organization: 'acme', status: '429' })).toBe(2)
    expect(value('rate_limit_wait_seconds_total', ACME)).toBe(2.5)
    expect(value('wal_bytes')).toBe(4096)
    expect(value('published_timestamp_seconds')).toBe((NOW - 180_000) / 1000)
    expect(value('check_exit_code')).toBe(3)
  })

  it('tells what waits for the workers of a mirror that several share', async () => {
    const known = full()
    const queue = { waiting: 12, oldest_ms: 2500, running: 8, failed: 3 }

    const { value } = await scrape({ ...known, status: { ...known.status, queue } })
    const alone = await scrape(known)

    const names = ['queue_waiting', 'queue_oldest_seconds', 'queue_running', 'queue_failed']
    expect(names.map((name) => value(name))).toEqual([12, 2.5, 8, 3])
    expect(alone.samples.filter(({ name }) => name.includes('queue'))).toEqual([])
  })

  it('leaves out what is not known, so that no list looks as if it were of 1970', async () => {
    const never = job('acme', 'orders', {
      as_of: null,
      last_complete_at: null,
      coverage: null,
      last_run_at: null,
      running: null,
    })

    const { samples } = await scrape(overview([never], { runs: new Map() }))

    const names = new Set(samples.map(({ name }) => name))
    for (const name of [
      'as_of_timestamp_seconds',
      'last_success_timestamp_seconds',
      'last_run_seconds',
      'last_refresh_seconds',
      'running',
      'disk_free_bytes',
    ])
      expect(names).not.toContain(`admin_mirror_${name}`)
    expect(samples.every(({ value }) => Number.isFinite(value))).toBe(true)
  })

  it('says when the scheduler stalls and the mirror cannot be used', async () => {
    const { value } = await scrape(full(), { stalled: 'late', unusable: 'full' })

    expect([value('scheduler_ticking'), value('usable')]).toEqual([0, 0])
  })

  it('carries any name, what would reorder a line escaped', async () => {
    const name = 'A "quoted" \\ name\nof two lines \u202e株式会社 {a="b"}'

    const { samples } = await scrape(overview([job(name)]))

    expect(samples.find((sample) => sample.name === 'admin_mirror_rows')?.labels.organization).toBe(
      'A "quoted" \\ name\\u{a}of two lines \\u{202e}株式会社 {a="b"}',
    )
  })

  it('names counters and units as Prometheus does', async () => {
    const { types } = await scrape(full())

    for (const [name, type] of types) {
      expect(name).toMatch(/^admin_mirror_[a-z_]+$/)
      expect(name.endsWith('_total')).toBe(type === 'counter')
      expect(name).not.toMatch(/_(ms|milliseconds|kb|mb|percent|minutes)(_|$)/)
    }
  })

  it.skipIf(!HAS_PROMTOOL)('is read by promtool, which finds nothing to improve', async () => {
    const checked = execFileSync('promtool', ['check', 'metrics'], {
      input: await metricsText(full(), WELL),
      encoding: 'utf8',
    })

    expect(checked).toBe('')
  })
})
