import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { metricsText } from '../../src/listener/metrics.ts'
import { parseScrape } from './exposition.ts'
import { full } from './overviews.ts'
import { HAS_PROMTOOL } from './promtool.ts'

// What the alerts and the documents say of metrics, beside a scrape.

const CONFIG = path.resolve(import.meta.dirname, '../../config')
const ALERTS = path.join(CONFIG, 'prometheus-alerts.yaml')

const KNOWN = full()
/** Of many workers, so that nothing is missing. */
const SHARED = {
  ...KNOWN,
  status: { ...KNOWN.status, queue: { waiting: 3, oldest_ms: 4000, running: 2, failed: 1 } },
}
const { types } = parseScrape(await metricsText(SHARED, { stalled: null, unusable: null }))

function namesIn(file: string): string[] {
  const text = fs.readFileSync(path.join(CONFIG, file), 'utf8')
  return [...new Set(text.match(/\badmin_mirror_[a-z_]+[a-z]\b/g))]
}

describe('metrics', () => {
  it.each(['prometheus-alerts.yaml', 'REFERENCE.md'])('that %s names are in a scrape', (file) => {
    const names = namesIn(file)

    expect(names.length).toBeGreaterThan(8)
    expect(names.filter((name) => !types.has(name))).toEqual([])
  })
})

describe.skipIf(!HAS_PROMTOOL)('the alert rules', () => {
  it('are valid', () => {
    expect(execFileSync('promtool', ['check', 'rules', ALERTS], { encoding: 'utf8' })).toContain('SUCCESS')
  })
})
