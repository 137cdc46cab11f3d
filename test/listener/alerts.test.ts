import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { metricsText } from '../../src/listener/metrics.ts'
import { parseScrape } from './exposition.ts'
import { FULL } from './overviews.ts'
import { HAS_PROMTOOL } from './promtool.ts'

// What the alerts, the dashboard and the documents say of metrics, beside a scrape.

const CONFIG = path.resolve(import.meta.dirname, '../../config')
const ALERTS = path.join(CONFIG, 'prometheus-alerts.yaml')

/** Of many workers, so that nothing is missing. */
const SHARED = {
  ...FULL,
  status: { ...FULL.status, queue: { waiting: 3, oldest_ms: 4000, running: 2, failed: 1 } },
}
const { types, samples } = parseScrape(await metricsText(SHARED, { stalled: null, unusable: null }))

function namesIn(file: string): string[] {
  const text = fs.readFileSync(path.join(CONFIG, file), 'utf8')
  return [...new Set(text.match(/\badmin_mirror_[a-z_]+[a-z]\b/g))]
}

describe('metrics', () => {
  it.each(['prometheus-alerts.yaml', 'grafana-dashboard.json', 'README.md'])(
    'that %s names are in a scrape',
    (file) => {
      const names = namesIn(file)

      expect(names.length).toBeGreaterThan(8)
      expect(names.filter((name) => !types.has(name))).toEqual([])
    },
  )

  it('are all in the documents, with their labels', () => {
    const rows = fs
      .readFileSync(path.join(CONFIG, 'README.md'), 'utf8')
      .split('\n')
      .filter((line) => line.startsWith('| `admin_mirror_'))
    const documented = new Map(
      rows.flatMap((row) => {
        const [, names = '', labels = ''] = row.split('|')
        return (names.match(/admin_mirror_\w+/g) ?? []).map((name) => [name, labels.trim()] as const)
      }),
    )

    const different = samples.filter(({ name, labels }) => {
      const known = documented.get(name)?.split(', ') ?? []
      return !documented.has(name) || Object.keys(labels).some((label) => !known.includes(label))
    })
    expect(different).toEqual([])
  })
})

describe.skipIf(!HAS_PROMTOOL)('the alert rules', () => {
  it('are valid', () => {
    expect(execFileSync('promtool', ['check', 'rules', ALERTS], { encoding: 'utf8' })).toContain('SUCCESS')
  })
})
