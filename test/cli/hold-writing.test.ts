import { describe, expect, it } from 'vitest'
import { untilHoldIsWritten } from '../../src/cli/hold-writing.ts'
import { MirrorError, MirrorLostError } from '../../src/errors.ts'

/** A write that fails so often, on a clock that only sleeping moves, and what was reported. */
function scene(failures: number, error: Error, stopAfter = Number.POSITIVE_INFINITY) {
  const stop = new AbortController()
  const reports: { at: number; message: string }[] = []
  let clock = 0
  let tries = 0
  const write = async () => {
    tries++
    if (tries > stopAfter) stop.abort('SIGTERM')
    if (tries <= failures) throw error
  }
  const options = {
    now: () => clock,
    sleep: async (ms: number) => {
      clock += ms
    },
    signal: stop.signal,
    onWait: ({ message }: MirrorError) => reports.push({ at: clock, message }),
  }
  return { run: () => untilHoldIsWritten(write, options), reports, tries: () => tries }
}

describe('the hold of a refused token', () => {
  it('is written at once where that can be, and nothing is reported', async () => {
    const { run, reports, tries } = scene(0, new MirrorError('locked'))

    expect(await run()).toBe(false)
    expect({ reports, tries: tries() }).toEqual({ reports: [], tries: 1 })
  })

  it('is tried for as long as it takes, and that is reported at first and once a minute', async () => {
    const { run, reports, tries } = scene(300, new MirrorError('the disk is full'))

    expect(await run()).toBe(true)
    expect(tries()).toBe(301)
    expect(reports).toEqual([0, 60_000, 120_000].map((at) => ({ at, message: 'the disk is full' })))
  })

  it('is tried after a signal as before, and that is reported', async () => {
    const { run, reports, tries } = scene(50, new MirrorError('locked'), 20)

    expect(await run()).toBe(true)
    expect(tries()).toBe(51)
    expect(reports.map(({ at }) => at)).toEqual([0, 10_000])
  })

  it.each([new MirrorLostError('moved away'), new TypeError('a mistake')])(
    'is given up where no waiting helps: %s',
    async (error) => {
      const { run, tries } = scene(5, error)

      await expect(run()).rejects.toBe(error)
      expect(tries()).toBe(1)
    },
  )
})
