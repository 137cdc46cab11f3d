import { describe, expect, it } from 'vitest'
import { JobError } from '../../src/errors.ts'
import { runOnce, walks } from '../helpers/run-once.ts'
import { scriptedList, upTo } from '../helpers/scripted-list.ts'
import { openTestMirror, SYNC } from '../helpers/test-mirror.ts'

/** A list of a hundred pages: while its first pages are read, items leave its front and join its end alternately. */
function moving(stopAt: number | null = null) {
  return scriptedList({
    ids: upTo(300),
    before(answer, list) {
      if (answer === stopAt) throw new JobError('NETWORK', 'the cable is cut')
      if (answer > 50 || answer < 5) return
      if (answer % 4 === 0) list.ids.shift()
      if (answer % 4 === 2) list.ids.push(1000 + answer)
    },
  })
}

describe('what a walk expects to have missed', () => {
  it('is 0 if nothing moved', async () => {
    const test = openTestMirror()

    const result = await runOnce(test, scriptedList({ ids: upTo(30) }))

    expect(result).toMatchObject({ coverage: 'steady', expectedMissed: 0 })
    expect(walks(test)).toMatchObject([{ expected_missed: 0 }])
  })

  it('is in the mirror and in the result of the run', async () => {
    const test = openTestMirror()

    const result = await runOnce(test, moving())

    expect(result.coverage).toBe('repaired')
    expect(result.expectedMissed).toBeGreaterThan(0.1)
    expect(walks(test)).toMatchObject([{ expected_missed: result.expectedMissed }])
    expect(test.rows("SELECT expected_missed FROM sync_status WHERE organization = 'acme'")).toEqual([
      { expected_missed: result.expectedMissed },
    ])
  })

  it('covers the whole walk, though another process resumed it after the list stopped moving', async () => {
    const whole = await runOnce(openTestMirror(), moving())
    const test = openTestMirror()
    const list = moving(80)
    await runOnce(test, list)

    const resumed = await runOnce(test, list)

    expect(resumed).toMatchObject({ coverage: 'repaired', walk: { resumed: true } })
    expect(resumed.expectedMissed).toBeGreaterThan((whole.expectedMissed ?? 0) * 0.9)
  })

  it('is null for a partial walk, and for a list without a total', async () => {
    const partial = openTestMirror()
    const uncounted = openTestMirror()

    await runOnce(partial, moving(), { plan: { ...SYNC, origin: 'backfill', kind: 'partial', firstPage: 2 } })
    await runOnce(uncounted, {
      source: {
        ...moving().source,
        fetchPage: async (...args) => ({ ...(await moving().source.fetchPage(...args)), total: null }),
      },
    })

    expect([...walks(partial), ...walks(uncounted)]).toMatchObject([
      { status: 'complete', coverage: null, expected_missed: null },
      { status: 'complete', coverage: null, expected_missed: null },
    ])
  })
})
