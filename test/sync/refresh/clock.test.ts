import { describe, expect, it } from 'vitest'
import { ACME } from '../../helpers/jobs.ts'
import { runOnce, runs } from '../../helpers/run-once.ts'
import { type Script, scriptedList, upTo } from '../../helpers/scripted-list.ts'
import { policyOf } from '../../helpers/shares.ts'
import { openTestMirror, type TestMirror } from '../../helpers/test-mirror.ts'

const MINUTE = 60_000
const DAY = 1440 * MINUTE

const IDS = upTo(30)

/** A mirror of a list of ten pages that a full walk has read a minute ago. */
async function synced() {
  const test = openTestMirror()
  await runOnce(test, scriptedList({ ids: IDS }))
  test.clock.advance(MINUTE)
  return test
}

/** A refresh or a full walk; `before`: what happens before its answers. */
function read(test: TestMirror, kind: 'refresh' | 'walk', before: Script['before'] = () => {}) {
  return runOnce(
    test,
    scriptedList({ ids: IDS, before }),
    kind === 'walk' ? { refresh: policyOf(test.clock.now, { every: DAY / 2 }) } : { instead: 'newest' },
  )
}

function claims(test: TestMirror): { as_of: string; fresh_as_of: string } {
  const sql = 'SELECT as_of, fresh_as_of FROM sync_status WHERE organization_id = ?'
  const [status] = test.rows(sql, ACME.id)
  return { as_of: String(status?.as_of), fresh_as_of: String(status?.fresh_as_of) }
}

function timeOf(test: TestMirror): string {
  return new Date(test.clock.now()).toISOString()
}

describe('once a clock that ran ahead was set back', () => {
  it.each(['refresh', 'walk'] as const)('claims nothing that is to come: after a %s', async (kind) => {
    const test = await synced()
    test.clock.advance(DAY)
    await read(test, 'refresh')
    test.clock.advance(-DAY)
    const at = timeOf(test)

    await read(test, kind)

    expect(claims(test).fresh_as_of).toBe(at)
  })

  it('a walk that takes until then claims nothing of the time that the wrong clock showed', async () => {
    const test = await synced()
    test.clock.advance(DAY)
    await read(test, 'refresh')
    test.clock.advance(-1)
    const at = timeOf(test)

    await read(test, 'walk', () => test.clock.advance(MINUTE))

    expect(claims(test)).toEqual({ as_of: at, fresh_as_of: at })
  })

  it('a refresh that this interrupts claims nothing', async () => {
    const test = await synced()
    const before = claims(test)
    test.clock.advance(DAY)

    await read(test, 'refresh', (answer) => answer === 2 && test.clock.advance(-MINUTE))

    expect(claims(test)).toEqual(before)
  })

  it('is told between two pages of a walk', async () => {
    const test = await synced()
    const { as_of: before } = claims(test)
    test.clock.advance(DAY)
    await read(test, 'refresh')
    const told: string[] = []

    await read(test, 'walk', (answer) => {
      if (answer === 3) test.clock.advance(-MINUTE)
      told.push(claims(test).fresh_as_of)
    })

    expect(told.map((claim) => claim === before).slice(0, 5)).toEqual([false, false, false, true, true])
  })

  it('a refresh that fails is not tried again with each page of a walk', async () => {
    const test = await synced()
    test.clock.advance(DAY)
    await read(test, 'refresh')
    test.clock.advance(-DAY)

    const { source } = scriptedList({ ids: IDS, before: () => test.clock.advance(8000) })
    await runOnce(
      test,
      {
        source: {
          ...source,
          fetchPage: async (page, observe, signal, urgency) => {
            if (urgency === 'refresh') throw new Error('no answer')
            return source.fetchPage(page, observe, signal, urgency)
          },
        },
      },
      { refresh: policyOf(test.clock.now, { every: MINUTE }) },
    )

    expect(runs(test).filter(({ status }) => status === 'failed')).toHaveLength(1)
  })
})
