import { describe, expect, it } from 'vitest'
import { JobError, type KnownError } from '../../src/errors.ts'
import { createPings } from '../../src/ping/pings.ts'
import type { JobResult } from '../../src/sync/job.ts'
import { RAN, refreshOf, resultOf } from './results.ts'

/** A minute of `begin`'s scene: what sleeps in it wakes when told. */
function createSleep() {
  const sleepers: { wake: () => void; signal: AbortSignal }[] = []
  const sleep = (_: number, signal: AbortSignal) =>
    new Promise<void>((resolve, reject) => {
      sleepers.push({ wake: resolve, signal })
      signal.addEventListener('abort', () => reject(new Error('stopped')))
    })
  return { sleep, sleepers }
}

/** `acme` and `globex` tell one address, `initech` its own, `hooli` none. */
function createScene(sleep = createSleep().sleep) {
  const sent: string[] = []
  const texts: string[] = []
  const stop = new AbortController()
  let time = 0
  const addresses: Record<string, string> = { acme: 'all', globex: 'all', initech: 'own' }
  const pings = createPings({
    addressOf: (id) => addresses[id] ?? null,
    tokenOf: (id) => id,
    send: async (address, kind, text) => {
      sent.push(`${address} ${kind}`)
      texts.push(text)
    },
    onLost: () => {},
    onSent: () => {},
    sleep,
    signal: stop.signal,
    // A second passes between two looks.
    now: () => time++ * 1000,
  })
  /** Runs a job that ends when told. */
  const begin = (name: string) => {
    const end = pings.begin([resultOf(name).job])
    return async (error: KnownError | null = null, heldBack: KnownError | null = null) => {
      await Promise.resolve()
      end([resultOf(name, { error, heldBack })])
      await pings.idle()
    }
  }
  return { sent, texts, begin, stop, pings }
}

const FAILURE = new JobError('BAD_RESPONSE', 'what the server said of Mr Secret')

/** What an earlier process left. */
const held = {
  organizationId: 'acme',
  organization: 'acme',
  collection: 'orders',
  code: 'UNAUTHORIZED',
  waitsForSomebody: true,
  endsByRefresh: true,
}

describe('the pings of jobs that begin together', () => {
  it('are one start and one outcome for each address, once all have ended', async () => {
    const { sent, begin, pings } = createScene()
    const ends = ['acme', 'globex', 'initech', 'hooli'].map(begin)
    await Promise.resolve()
    await pings.idle()
    expect(sent).toEqual(['all start', 'own start'])

    await ends[0]?.()
    await ends[2]?.()
    expect(sent).toEqual(['all start', 'own start', 'own success'])

    await ends[1]?.(FAILURE)
    await ends[3]?.(FAILURE)
    expect(sent).toEqual(['all start', 'own start', 'own success', 'all fail'])
  })

  it('say what failed, and nothing that a server said', async () => {
    const { texts, begin } = createScene()
    const ends = ['acme', 'globex'].map(begin)
    await ends[0]?.(FAILURE)
    await ends[1]?.(null, new JobError('REMOVALS_HELD', 'Mr Secret left'))

    expect(texts[0]).toBe('admin-mirror: 2 lists to read\n')
    expect(texts[1]).toMatch(/^admin-mirror: 2 lists in 1 second;/)
    expect(texts[1]).toContain(
      '2 lists failed:\nacme orders: BAD_RESPONSE (an answer was not the list)\nglobex orders: REMOVALS_HELD (',
    )
    expect(texts.join('')).not.toContain('Secret')
  })
})

describe('a failure while other lists of the run are still read', () => {
  it('is told after ten seconds, the next ones once a minute, and all of them at the end', async () => {
    const { sleep, sleepers } = createSleep()
    const { sent, texts, begin, pings } = createScene(sleep)
    const ends = ['acme', 'globex'].map(begin)
    const more = ['acme', 'globex', 'acme'].map(begin)
    const wake = async () => {
      sleepers.at(-1)?.wake()
      await new Promise(setImmediate)
      await pings.idle()
    }
    await ends[0]?.(FAILURE)
    expect(sent).toEqual(['all start'])
    await wake()
    expect(sent).toEqual(['all start', 'all fail'])

    await ends[1]?.(FAILURE)
    await wake()
    expect(sent).toEqual(['all start', 'all fail'])
    await wake()
    expect(sent).toEqual(['all start', 'all fail', 'all fail'])
    expect(texts[2]).toContain('2 lists failed:')
    // Minutes without a further failure.
    await wake()
    await wake()
    expect(sent).toHaveLength(3)
    await more[0]?.(FAILURE)
    await wake()
    expect(sent).toHaveLength(4)

    await more[1]?.()
    await more[2]?.()
    expect(sent).toEqual(['all start', 'all fail', 'all fail', 'all fail', 'all success'])
    // Nothing waits for the next minute.
    expect(sleepers.map(({ signal }) => signal.aborted)).not.toContain(false)
  })
})

describe('a refresh between the times of a schedule', () => {
  const HELD = new JobError('UNAUTHORIZED', 'what the server said of Mr Secret')
  const LEFT = new JobError('REMOVALS_HELD', 'Mr Secret left')
  const idle = refreshOf('acme', { run: null })
  /** A short list, which is walked instead. */
  const walk = resultOf('acme', { run: RAN })

  it.each<[string, JobResult[], string[]]>([
    ['that was not due any more, nothing', [refreshOf('acme', { error: HELD }), idle], ['all fail']],
    ['of an organization that tells nobody, nothing', [refreshOf('hooli', { error: HELD })], []],
    [
      'that was stopped after another had failed, nothing',
      [HELD, new JobError('INTERRUPTED', 'stopped')].map((error) => refreshOf('acme', { error })),
      ['all fail'],
    ],
    [
      'that is a walk, its removals held back',
      [{ ...walk, heldBack: LEFT }, walk],
      ['all fail', 'all success'],
    ],
  ])('tells, of one %s', async (_, results, expected) => {
    const { sent, texts, pings } = createScene()
    for (const result of results) {
      pings.note([result])
      await pings.idle()
    }

    expect(sent).toEqual(expected)
    expect(texts.join('')).not.toContain('Secret')
  })
})

describe('the outcome', () => {
  it('of a run or a refresh that was told to stop is not told', async () => {
    const { sent, begin, stop, pings } = createScene()
    const end = begin('acme')
    await Promise.resolve()
    await Promise.resolve()
    stop.abort()
    await end(FAILURE)
    pings.note([refreshOf('acme', { error: FAILURE })])
    await pings.idle()

    expect(sent).toEqual(['all start'])
  })
})

describe('what an earlier process left', () => {
  it('is told at once if it waits for somebody, and no success of another list hides it', async () => {
    const { sent, texts, begin, pings } = createScene()
    pings.recall([held, { ...held, organizationId: 'hooli', organization: 'hooli' }])
    await pings.idle()
    await begin('globex')()
    await begin('acme')()

    expect(sent).toEqual(['all fail', 'all start', 'all fail', 'all start', 'all success'])
    const line = 'acme orders: UNAUTHORIZED (its token is held: it needs a new one)'
    expect(texts[0]).toBe(`admin-mirror: started\n1 list failed:\n${line}\n`)
    expect(texts[2]).toContain(line)
  })

  it('is kept in mind alone if it may pass by itself', async () => {
    const { sent, begin, pings } = createScene()
    pings.recall([{ ...held, code: 'NETWORK', waitsForSomebody: false }])
    await pings.idle()
    await begin('globex')()
    await begin('acme')()

    expect(sent).toEqual(['all start', 'all fail', 'all start', 'all success'])
  })
})

const REFUSED = new JobError('UNAUTHORIZED', 'refused')

/** Lists of one token and one address. `isLost`: no ping arrives, until `arrive()`. */
function createTokenScene(isLost = false) {
  const sent: string[] = []
  const texts: string[] = []
  let isAway = isLost
  const pings = createPings({
    addressOf: () => 'all',
    tokenOf: () => 'one',
    send: async (_, kind, text) => {
      sent.push(kind)
      texts.push(text)
      if (isAway) throw new Error('status 500')
    },
    onLost: () => {},
    onSent: () => {},
    sleep: () => (isLost ? Promise.resolve() : new Promise(() => {})),
    signal: new AbortController().signal,
    now: () => 0,
  })
  const arrive = () => {
    isAway = false
  }
  return { sent, texts, pings, arrive }
}

it('a refresh whose token is accepted again ends what an earlier process left, and the first run met', async () => {
  const { sent, pings } = createTokenScene()
  pings.recall([held])
  const end = pings.begin([resultOf('acme').job])
  await Promise.resolve()
  end([resultOf('acme', { error: REFUSED })])
  pings.note([refreshOf('acme')])
  await pings.idle()

  expect(sent.at(-1)).toBe('success')
})

it('a refresh that succeeds does not end the failure of a walk that an earlier process left', async () => {
  const { sent, pings } = createTokenScene()
  pings.recall([{ ...held, code: 'INCOMPLETE', endsByRefresh: false }])
  pings.note([refreshOf('acme')])
  await pings.idle()

  expect(sent).toEqual(['fail'])
})

async function failOneAfterAnother(
  { pings }: Pick<ReturnType<typeof createTokenScene>, 'pings'>,
  names: readonly string[],
): Promise<void> {
  for (const name of names) {
    pings.note([refreshOf(name, { error: REFUSED })])
    await pings.idle()
  }
}

it('a call that did not arrive is made again once, though every list has met the token before', async () => {
  const scene = createTokenScene(true)
  const names = ['acme', 'globex', 'initech']
  for (const name of names) scene.pings.note([refreshOf(name, { error: REFUSED })])
  await scene.pings.idle()
  scene.arrive()
  scene.sent.length = 0
  await failOneAfterAnother(scene, names)
  await failOneAfterAnother(scene, names)

  expect(scene.sent).toEqual(['fail'])
  expect(scene.texts.at(-1)).toContain('3 lists failed:')
})

it('what an earlier process left is one call with what refreshes meet', async () => {
  const { sent, pings } = createTokenScene()
  pings.recall([held])
  await pings.idle()
  pings.note([refreshOf('globex', { error: REFUSED })])
  await pings.idle()
  expect(sent).toEqual(['fail'])
})
