import { describe, expect, it } from 'vitest'
import { ACME } from '../../helpers/jobs.ts'
import { runOnce, runs } from '../../helpers/run-once.ts'
import { type Script, scriptedList, upTo } from '../../helpers/scripted-list.ts'
import { policyOf } from '../../helpers/shares.ts'
import { openTestMirror, type TestMirror } from '../../helpers/test-mirror.ts'

const MINUTE = 60_000
const DAY = 1440 * MINUTE

/** A mirror of a list of ten pages, of which a refresh was made by a clock that was ahead by this. */
async function refreshedAhead(ahead: number) {
  const test = openTestMirror()
  await runOnce(test, scriptedList({ ids: upTo(30) }))
  test.clock.advance(MINUTE + ahead)
  await read(test, 'refresh')
  return test
}

/** A refresh or a full walk; `before`: what happens before its answers. */
function read(test: TestMirror, kind: 'refresh' | 'walk', before: Script['before'] = () => {}) {
  const policy = policyOf(test.clock.now, { every: DAY / 2 })
  const list = scriptedList({ ids: upTo(30), before })
  return runOnce(test, list, kind === 'walk' ? { refresh: policy } : { instead: 'newest' })
}

function claims(test: TestMirror): { as_of: string; fresh_as_of: string } {
  const sql = 'SELECT as_of, fresh_as_of FROM sync_status WHERE organization_id = ?'
  const [status] = test.rows(sql, ACME.id)
  return { as_of: String(status?.as_of), fresh_as_of: String(status?.fresh_as_of) }
}

describe('once a clock that ran ahead was set back', () => {
  it.each(['refresh', 'walk'] as const)('claims nothing that is to come: after a %s', async (kind) => {
    const test = await refreshedAhead(DAY)
    test.clock.advance(-DAY)
    const at = new Date(test.clock.now()).toISOString()

    await read(test, kind)

    expect(claims(test).fresh_as_of).toBe(at)
  })

  it('a walk that takes until then claims nothing of the time that the wrong clock showed', async () => {
    const test = await refreshedAhead(DAY)
    test.clock.advance(-1)
    const at = new Date(test.clock.now()).toISOString()

    await read(test, 'walk', () => test.clock.advance(MINUTE))

    expect(claims(test)).toEqual({ as_of: at, fresh_as_of: at })
  })

  it('a refresh that this interrupts claims nothing', async () => {
    const test = await refreshedAhead(0)
    test.clock.advance(DAY)

    await read(test, 'refresh', (answer) => answer === 2 && test.clock.advance(-MINUTE))

    const { as_of, fresh_as_of } = claims(test)
    expect(fresh_as_of).toBe(as_of)
  })

  it('a refresh that fails is not tried again with each page of a walk', async () => {
    const test = await refreshedAhead(DAY)
    test.clock.advance(-DAY)
    const { source } = scriptedList({ ids: upTo(30), before: () => test.clock.advance(8000) })
    const fetchPage: typeof source.fetchPage = async (page, observe, signal, urgency) => {
      if (urgency === 'refresh') throw new Error('no answer')
      return source.fetchPage(page, observe, signal, urgency)
    }

    const refresh = policyOf(test.clock.now, { every: MINUTE })
    await runOnce(test, { source: { ...source, fetchPage } }, { refresh })

    const failed = runs(test).filter(({ status }) => status === 'failed')
    const times = failed.map(({ started_at }) => Date.parse(String(started_at)))
    expect(times.length).toBeGreaterThan(1)
    expect(times.every((at, index) => index === 0 || at - (times[index - 1] ?? 0) >= MINUTE)).toBe(true)
  })
})
