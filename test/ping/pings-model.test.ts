import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { JobError } from '../../src/errors.ts'
import { createPings, type Pings } from '../../src/ping/pings.ts'
import { reasonOf } from '../../src/ping/summary.ts'
import type { JobResult } from '../../src/sync/job.ts'
import { RAN, refreshOf, resultOf } from './results.ts'

// What an address is told, however runs and refreshes of three lists with one token follow each other: it hears of each failure, of
// a refused token once, and of success only when every list is well by the mirror.

const LISTS = ['acme', 'globex', 'initech']
type How = 'well' | 'UNAUTHORIZED' | 'BAD_RESPONSE' | 'CONFIGURATION' | 'BUSY'
const HOW: How[] = ['well', 'well', 'well', 'UNAUTHORIZED', 'BAD_RESPONSE', 'CONFIGURATION', 'BUSY']

interface Model {
  /** In the mirror: whether the token is held, and the lists whose last run failed. */
  isHeld: boolean
  failed: Map<string, { how: How; by: 'walk' | 'refresh' }>
  /** What the last ping named. */
  told: Map<string, How>
}

interface Real {
  pings: Pings
  sent: string[]
}

function endOf(list: string, how: How, trigger: 'schedule' | 'refresh'): JobResult {
  const ended = {
    run: how === 'UNAUTHORIZED' || how === 'BUSY' ? null : RAN,
    error: how === 'well' ? null : new JobError(how, 'what the server said'),
  }
  return trigger === 'refresh' ? refreshOf(list, ended) : resultOf(list, ended)
}

/** What a run or a refresh leaves in the mirror. */
function note(model: Model, list: string, how: How, by: 'walk' | 'refresh'): void {
  const known = model.failed.get(list)
  if (how === 'BUSY') return
  // Only an answer shows that the token is accepted.
  if (how !== 'CONFIGURATION') model.isHeld = how === 'UNAUTHORIZED'
  if (how === 'BAD_RESPONSE' || how === 'CONFIGURATION')
    model.failed.set(list, { how, by: known?.by === 'walk' ? 'walk' : by })
  if (how === 'well' && (by === 'walk' || known?.by === 'refresh')) model.failed.delete(list)
}

function failing({ isHeld, failed }: Model): Map<string, How> {
  return isHeld
    ? new Map(LISTS.map((list) => [list, 'UNAUTHORIZED']))
    : new Map([...failed].map(([list, { how }]) => [list, how]))
}

type Ended = readonly { list: string; how: How }[]

/** What the address is told: by the mirror, and what the run has met. */
function tell(model: Model, ended: Ended): string {
  model.told = failing(model)
  for (const { list, how } of ended) if (how !== 'well' && how !== 'BUSY') model.told.set(list, how)
  return model.told.size > 0 ? 'fail' : 'success'
}

type Deed = fc.AsyncCommand<Model, Real>

const runs = (ends: readonly (How | null)[]): Deed => ({
  toString: () => `run ${ends.join()}`,
  check: () => ends.some((end) => end !== null),
  async run(model, { pings, sent }) {
    const ended = LISTS.flatMap((list, index) => {
      const how = ends[index]
      return how ? [{ list, how }] : []
    })
    for (const { list, how } of ended) note(model, list, how, 'walk')
    const results = ended.map(({ list, how }) => endOf(list, how, 'schedule'))
    const end = pings.begin(results.map(({ job }) => job))
    await Promise.resolve()
    end(results)
    await pings.idle()
    expect(sent.splice(0)).toEqual(['start', tell(model, ended)])
  },
})

const refreshes = (list: string, how: How): Deed => ({
  toString: () => `refresh of ${list}: ${how}`,
  check: () => true,
  async run(model, { pings, sent }) {
    note(model, list, how, 'refresh')
    pings.note([endOf(list, how, 'refresh')])
    await pings.idle()
    expect(sent.splice(0)).toEqual(afterRefresh(model, list, how))
  },
})

function afterRefresh(model: Model, list: string, how: How): string[] {
  if (how === 'BUSY') return []
  if (how !== 'well') return model.told.get(list) === how ? [] : [tell(model, [{ list, how }])]
  if (model.told.size === 0) return []
  const known = failing(model)
  if (known.size === 0) return [tell(model, [])]
  model.told = new Map([...model.told].filter(([one]) => known.has(one)))
  return []
}

function begin(): { model: Model; real: Real } {
  const sent: string[] = []
  const model: Model = { isHeld: false, failed: new Map(), told: new Map() }
  const pings = createPings({
    addressOf: () => 'all',
    troubles: async () =>
      Array.from(failing(model), ([name, how]) => ({
        organizationId: name,
        list: `${name} orders`,
        reason: reasonOf(how, null),
        waitsForSomebody: false,
      })),
    send: async (_, kind) => void sent.push(kind),
    onLost: () => {},
    onSent: () => {},
    sleep: () => new Promise(() => {}),
    signal: new AbortController().signal,
    now: () => 0,
  })
  return { model, real: { pings, sent } }
}

it('an address is told of each failure, of a refused token once, and of success when every list is well', async () => {
  const end = fc.constantFrom(...HOW)
  const three = fc.tuple(fc.option(end), fc.option(end), fc.option(end))
  const refresh = fc.tuple(fc.constantFrom(...LISTS), end)
  const deeds = fc.commands([three.map(runs), refresh.map(([list, how]) => refreshes(list, how))], {
    maxCommands: 25,
    size: 'max',
  })
  await fc.assert(
    fc.asyncProperty(deeds, (all) => fc.asyncModelRun(begin, all)),
    { numRuns: 400 },
  )
})
