import { describe, expect, it } from 'vitest'
import { JobError, type KnownError } from '../../src/errors.ts'
import { createPings, type Trouble } from '../../src/ping/pings.ts'
import { reasonOf } from '../../src/ping/summary.ts'
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
  const mirror: Trouble[] = []
  const stop = new AbortController()
  let time = 0
  const addresses: Record<string, string> = { acme: 'all', globex: 'all', initech: 'own' }
  const pings = createPings({
    addressOf: (id) => addresses[id] ?? null,
    troubles: async () => mirror,
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
  return { sent, texts, mirror, begin, stop, pings }
}

const FAILURE = new JobError('BAD_RESPONSE', 'what the server said of Mr Secret')

/** A list that is not well by the mirror. */
function troubleOf(name: string, code: string): Trouble {
  return {
    organizationId: name,
    list: `${name} orders`,
    reason: reasonOf(code, null),
    waitsForSomebody: code === 'UNAUTHORIZED',
  }
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
    expect(sent).toEqual(['all start', 'all fail', 'all fail', 'all fail', 'all fail'])
    expect(texts.at(-1)).toContain('2 lists failed:')
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

describe('what the mirror says', () => {
  it('is told with the outcome of a run that met nothing itself, to the address of the list', async () => {
    const { sent, texts, mirror, begin } = createScene()
    mirror.push(troubleOf('acme', 'NETWORK'))
    await begin('globex')()
    await begin('initech')()
    mirror.length = 0
    await begin('globex')()

    const own = ['own start', 'own success']
    expect(sent).toEqual(['all start', 'all fail', ...own, 'all start', 'all success'])
    expect(texts[1]).toContain('\n1 list failed:\nacme orders: NETWORK (')
  })

  it('is told when a service begins, if it waits for somebody', async () => {
    const { sent, texts, mirror, begin, pings } = createScene()
    mirror.push(troubleOf('acme', 'UNAUTHORIZED'), troubleOf('hooli', 'UNAUTHORIZED'))
    mirror.push(troubleOf('initech', 'NETWORK'))
    await pings.tellStanding()
    await pings.idle()
    expect(sent).toEqual(['all fail'])
    const line = 'acme orders: UNAUTHORIZED (its token is held: it needs a new one)'
    expect(texts[0]).toBe(`admin-mirror: started\n1 list failed:\n${line}\n`)

    mirror.length = 0
    pings.note(['acme', 'initech'].map((name) => refreshOf(name)))
    await pings.idle()
    expect(sent).toEqual(['all fail', 'all success', 'own success'])

    await begin('globex')()
    expect(sent.slice(3)).toEqual(['all start', 'all success'])
  })
})

const REFUSED = new JobError('UNAUTHORIZED', 'refused')
const NAMES = ['acme', 'globex', 'initech']

/** Three lists of one token, which the mirror has as held until `end()`; no ping arrives until `arrive()`. */
function createHeldScene() {
  let [isAway, isHeld] = [true, true]
  const [sent, texts]: [string[], string[]] = [[], []]
  const pings = createPings({
    addressOf: () => 'all',
    troubles: async () => (isHeld ? NAMES.map((name) => troubleOf(name, 'UNAUTHORIZED')) : []),
    send: async (_, kind, text) => {
      if (isAway) throw new Error('status 500')
      sent.push(kind)
      texts.push(text)
    },
    onLost: () => {},
    onSent: () => {},
    sleep: async () => {},
    signal: new AbortController().signal,
    now: () => 0,
  })
  const failAll = async () => {
    for (const name of NAMES) {
      pings.note([refreshOf(name, { error: REFUSED, run: null })])
      await pings.idle()
    }
  }
  const arrive = () => {
    isAway = false
  }
  const end = () => {
    isHeld = false
  }
  return { sent, texts, pings, failAll, arrive, end }
}

it('a call that did not arrive is made again once, though every list has met the token before', async () => {
  const { sent, texts, failAll, arrive } = createHeldScene()
  await failAll()
  arrive()
  await failAll()
  await failAll()

  expect(sent).toEqual(['fail'])
  expect(texts.at(-1)).toContain('3 lists failed:')
})

it('that all is well again is told also after a call that did not arrive: an earlier one may have', async () => {
  const { sent, pings, failAll, arrive, end } = createHeldScene()
  await failAll()
  arrive()
  end()
  pings.note([refreshOf('acme')])
  await pings.idle()

  expect(sent).toEqual(['success'])
})
