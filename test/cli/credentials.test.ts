import pino from 'pino'
import { describe, expect, it } from 'vitest'
import { createCredentialsReader, untilHoldIsWritten } from '../../src/cli/credentials.ts'
import type { OrganizationConfig } from '../../src/config/organizations.ts'
import { MirrorError, MirrorLostError } from '../../src/errors.ts'
import { ACME, GLOBEX } from '../helpers/jobs.ts'
import { openTestMirror } from '../helpers/test-mirror.ts'

/** A write that fails `failures` times, on a clock that only sleeping moves, and what is reported. */
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
  it('is written at once, without a report', async () => {
    const { run, reports, tries } = scene(0, new MirrorError('locked'))

    expect(await run()).toBe(false)
    expect({ reports, tries: tries() }).toEqual({ reports: [], tries: 1 })
  })

  it('is tried until it is written, with a report at first and once a minute', async () => {
    const { run, reports, tries } = scene(300, new MirrorError('the disk is full'))

    expect(await run()).toBe(true)
    expect(tries()).toBe(301)
    expect(reports).toEqual([0, 60_000, 120_000].map((at) => ({ at, message: 'the disk is full' })))
  })

  it('is still tried after a signal, with one more report', async () => {
    const { run, reports, tries } = scene(50, new MirrorError('locked'), 20)

    expect(await run()).toBe(true)
    expect(tries()).toBe(51)
    expect(reports.map(({ at }) => at)).toEqual([0, 10_000])
  })

  it.each([new MirrorLostError('moved away'), new TypeError('a mistake')])(
    'is given up if waiting cannot help: %s',
    async (error) => {
      const { run, tries } = scene(5, error)

      await expect(run()).rejects.toBe(error)
      expect(tries()).toBe(1)
    },
  )
})

it('a refused token is looked for once in the files of all organizations, however many lists meet its hold', async () => {
  const { tokens, clock } = openTestMirror()
  let readings = 0
  const organizations = [ACME, GLOBEX].map(
    ({ id, name }): OrganizationConfig => ({
      id,
      name,
      schedule: '0 * * * *',
      refresh: false,
      collections: [],
      tokenFile: () => null,
      tokenPlace: 'token',
      readToken: () => {
        readings++
        return 'the token of both'
      },
    }),
  )
  const rateLimit = {
    requestsPerMinute: null,
    sharePercent: 100,
    scope: 'token',
    fallbackWait: 1,
    maxWait: 1,
  } as const
  const read = createCredentialsReader({
    config: { organizations, rateLimit },
    tokens,
    runtime: { ...clock, signal: new AbortController().signal },
    logger: pino({ enabled: false }),
    tryHeldTokens: false,
  })
  const [first] = organizations
  if (!first) throw new Error('there is no organization')
  const { hold } = await read(first)
  await hold.refused('the token was refused (401)')
  const message = 'run "admin-mirror resume" if it is valid again'
  await expect(hold.enter()).rejects.toThrow(message)
  const before = readings

  for (let list = 0; list < 100; list++) await expect(hold.enter()).rejects.toThrow(message)

  expect(readings).toBe(before)
})
