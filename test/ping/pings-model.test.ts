import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { JobError } from '../../src/errors.ts'
import { createPings, type Pings } from '../../src/ping/pings.ts'
import type { JobResult } from '../../src/sync/job.ts'
import { RAN, refreshOf, resultOf } from './results.ts'

// What an address is told, however runs and refreshes of three lists with one token follow each other: it hears of each failure, of
// a refused token once, and of success only when every list is well.

const LISTS = ['acme', 'globex', 'initech']
type How = 'well' | 'UNAUTHORIZED' | 'BAD_RESPONSE' | 'CONFIGURATION' | 'BUSY'
const HOW: How[] = ['well', 'well', 'well', 'UNAUTHORIZED', 'BAD_RESPONSE', 'CONFIGURATION', 'BUSY']

interface Model {
  /** The lists whose last run failed, and how. */
  failed: Map<string, How>
  /** Those of them whose failure a refresh that succeeds ends: no schedule's walk has failed. */
  byRefresh: Set<string>
  /** Whether the last failure that was told named the refused token. */
  isTokenTold: boolean
}

interface Real {
  pings: Pings
  sent: string[]
}

/** A held token, a busy list and a token file that cannot be read leave no line in `sync_runs`. */
function endOf(list: string, how: How, trigger: 'schedule' | 'refresh'): JobResult {
  const ended = {
    run: how === 'well' || how === 'BAD_RESPONSE' ? RAN : null,
    error: how === 'well' ? null : new JobError(how, 'what the server said'),
  }
  return trigger === 'refresh' ? refreshOf(list, ended) : resultOf(list, ended)
}

/** What the address is told. */
function told(model: Model): string {
  model.isTokenTold = [...model.failed.values()].includes('UNAUTHORIZED')
  return model.failed.size > 0 ? 'fail' : 'success'
}

type Deed = fc.AsyncCommand<Model, Real>

const runs = (ends: readonly (How | null)[]): Deed => ({
  toString: () => `run ${ends.join()}`,
  check: () => ends.some((end) => end !== null),
  async run(model, { pings, sent }) {
    const ran = LISTS.flatMap((list, index) => {
      const how = ends[index]
      return how ? [{ list, how }] : []
    })
    for (const { list, how } of ran) {
      const hidesWalk = model.failed.has(list) && !model.byRefresh.has(list)
      if (how === 'well') model.failed.delete(list)
      else if (how !== 'BUSY') model.failed.set(list, how)
      if (how === 'UNAUTHORIZED' && !hidesWalk) model.byRefresh.add(list)
      else if (how !== 'BUSY') model.byRefresh.delete(list)
    }
    const results = ran.map(({ list, how }) => endOf(list, how, 'schedule'))
    const end = pings.begin(results.map(({ job }) => job))
    await Promise.resolve()
    end(results)
    await pings.idle()
    expect(sent.splice(0)).toEqual(['start', told(model)])
  },
})

const refreshes = (list: string, how: How): Deed => ({
  toString: () => `refresh of ${list}: ${how}`,
  check: () => true,
  async run(model, { pings, sent }) {
    const expected = afterRefresh(model, list, how)
    pings.note([endOf(list, how, 'refresh')])
    await pings.idle()
    expect(sent.splice(0)).toEqual(expected)
  },
})

function afterRefresh(model: Model, list: string, how: How): string[] {
  const { failed, byRefresh, isTokenTold } = model
  if (how === 'BUSY' || failed.get(list) === how) return []
  if (how !== 'well') {
    if (!failed.has(list)) byRefresh.add(list)
    failed.set(list, how)
    return how === 'UNAUTHORIZED' && isTokenTold ? [] : [told(model)]
  }
  if (!failed.has(list) || !byRefresh.has(list)) return []
  failed.delete(list)
  byRefresh.delete(list)
  return failed.size > 0 ? [] : [told(model)]
}

function begin(): { model: Model; real: Real } {
  const sent: string[] = []
  const pings = createPings({
    addressOf: () => 'all',
    tokenOf: () => 'one',
    send: async (_, kind) => void sent.push(kind),
    onLost: () => {},
    onSent: () => {},
    sleep: () => new Promise(() => {}),
    signal: new AbortController().signal,
    now: () => 0,
  })
  return { model: { failed: new Map(), byRefresh: new Set(), isTokenTold: false }, real: { pings, sent } }
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
