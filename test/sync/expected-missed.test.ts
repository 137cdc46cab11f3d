import { describe, expect, it } from 'vitest'
import { JobError } from '../../src/errors.ts'
import { runOnce, walks } from '../helpers/run-once.ts'
import { scriptedList, upTo } from '../helpers/scripted-list.ts'
import { openTestMirror } from '../helpers/test-mirror.ts'

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
})
