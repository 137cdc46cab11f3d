import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createTokenHold, type HoldStore, type TokenHold } from '../../src/api/token-hold.ts'
import { TokenRefusedError } from '../../src/errors.ts'
import { settle } from './helpers/clock.ts'
import { createHoldStore } from './helpers/stores.ts'

function refusal(reason: string): TokenRefusedError {
  return new TokenRefusedError(
    `${reason}. Nothing more is sent with it. Put a new token into the configuration, or run "admin-mirror resume" if it is valid again`,
  )
}

/** A request: it waits for another one's trial, may be sent, was sent, is over, or was refused for a reason. */
type Request = 'waiting' | 'in' | 'sent' | 'over' | { refusedFor: string }

/**
 * What one process promises. `untried`: an earlier run left the token held, and one request may try it; `stopped`: nothing is sent for
 * that reason, until the hold is lifted elsewhere (`forGood`: the mirror keeps no hold that could be lifted).
 */
interface ProcessModel {
  requests: Request[]
  untried: boolean
  stopped: { reason: string; forGood: boolean } | null
  /** The request that tries the token. */
  trial: number | null
}

interface Model {
  /** Why the mirror holds the token. */
  held: string | null
  processes: ProcessModel[]
}

interface RealProcess {
  hold: TokenHold
  requests: Request[]
}

interface Real {
  store: HoldStore
  /** The mirror keeps no hold: no organization uses the token any more. */
  dropsHolds: boolean
  processes: RealProcess[]
}

/** Why a request that has no trial must not be sent now, or null. */
function whyNot(model: Model, one: ProcessModel): string | null {
  if (one.stopped && !one.stopped.forGood && model.held === null) one.stopped = null
  return one.stopped ? one.stopped.reason : one.untried ? null : model.held
}

function enter(model: Model, one: ProcessModel, request: number): void {
  const reason = one.trial === null ? whyNot(model, one) : null
  if (one.trial !== null) one.requests[request] = 'waiting'
  else if (reason !== null) one.requests[request] = { refusedFor: reason }
  else {
    one.requests[request] = 'in'
    if (one.untried) one.trial = request
  }
}

/** The trial is over: those that waited for it come again, in their order. */
function endTrial(model: Model, one: ProcessModel, { untried }: { untried: boolean }): void {
  Object.assign(one, { trial: null, untried })
  for (const [index, request] of one.requests.entries()) if (request === 'waiting') enter(model, one, index)
}

type Deed = fc.AsyncCommand<Model, Real>

function deed(
  name: string,
  may: (one: ProcessModel, model: Model) => boolean,
  which: number,
  run: (model: Model, one: ProcessModel, real: Real, process: RealProcess) => Promise<void> | void,
): Deed {
  const at = <T>(all: T[]) => all[which] as T
  return {
    toString: () => `process ${which}: ${name}`,
    check: (model) => may(at(model.processes), model),
    async run(model, real) {
      await run(model, at(model.processes), real, at(real.processes))
      await settle()
      expect(real.processes.map(({ requests }) => requests)).toEqual(
        model.processes.map(({ requests }) => requests),
      )
      expect(real.processes.map(({ hold }) => hold.isTrying())).toEqual(
        model.processes.map(({ trial }) => trial !== null),
      )
      expect(real.store.heldReason()).toBe(model.held)
    },
  }
}

/** The reason in the error's message. */
function reasonOf(error: unknown): { refusedFor: string } {
  expect(error).toBeInstanceOf(TokenRefusedError)
  const [reason = ''] = (error as Error).message.split('. ')
  expect(error).toEqual(refusal(reason))
  return { refusedFor: reason }
}

const arrives = (which: number) =>
  deed(
    'a request comes',
    () => true,
    which,
    (model, one, _, { hold, requests }) => {
      enter(model, one, one.requests.length)
      const index = requests.push('waiting') - 1
      hold.enter().then(
        () => {
          requests[index] = 'in'
        },
        (error: unknown) => {
          requests[index] = reasonOf(error)
        },
      )
    },
  )

/** `find` is -1 where no request is in that state. */
const first = (state: Request, { requests }: { requests: Request[] }) => requests.indexOf(state)

const sends = (which: number) =>
  deed(
    'a request is sent',
    (one) => first('in', one) >= 0,
    which,
    (model, one, _, { hold, requests }) => {
      const index = first('in', one)
      const reason = one.trial === null ? whyNot(model, one) : null
      one.requests[index] = reason === null ? 'sent' : { refusedFor: reason }
      try {
        hold.check()
        requests[index] = 'sent'
      } catch (error) {
        requests[index] = reasonOf(error)
      }
    },
  )

/** The request is over, unless nothing was sent and it is tried again. */
const givesUp = (which: number) =>
  deed(
    'a request is not sent',
    (one) => first('in', one) >= 0,
    which,
    (model, one, _, { hold, requests }) => {
      const index = first('in', one)
      one.requests[index] = 'over'
      requests[index] = 'over'
      if (one.trial !== null) endTrial(model, one, { untried: true })
      hold.undecided()
    },
  )

type Answer = { code: 401; reason: string; isDropped: boolean } | { code: 200 | 500 }

const answered = (which: number, answer: Answer) =>
  deed(
    `a request is answered: ${JSON.stringify(answer)}`,
    (one) => first('sent', one) >= 0,
    which,
    async (model, one, real, { hold, requests }) => {
      const index = first('sent', one)
      one.requests[index] = 'over'
      requests[index] = 'over'
      if (answer.code === 401) {
        one.stopped = { reason: answer.reason, forGood: answer.isDropped }
        model.held = answer.isDropped ? null : answer.reason
        endTrial(model, one, { untried: false })
        real.dropsHolds = answer.isDropped
        if (answer.isDropped) await real.store.lift()
        await hold.refused(answer.reason)
        real.dropsHolds = false
      } else if (answer.code === 200) {
        if (one.trial !== null) {
          model.held = null
          endTrial(model, one, { untried: false })
        }
        await hold.accepted()
      } else {
        if (one.trial !== null) {
          one.stopped = { reason: one.stopped?.reason ?? LEFT, forGood: false }
          endTrial(model, one, { untried: false })
        }
        hold.undecided()
      }
    },
  )

const resumes = () =>
  deed(
    'somebody types resume',
    (_, model) => model.held !== null,
    0,
    async (model, _, { store }) => {
      model.held = null
      await store.lift()
    },
  )

/** Why an earlier run left the token held. */
const LEFT = 'an old 401'

function begin(held: string | null): { model: Model; real: Real } {
  const kept = createHoldStore(held)
  const real: Real = {
    store: { ...kept, hold: async (why) => (real.dropsHolds ? undefined : kept.hold(why)) },
    dropsHolds: false,
    processes: [],
  }
  const model: Model = { held, processes: [] }
  for (let which = 0; which < 2; which++) {
    real.processes.push({ hold: createTokenHold(real.store), requests: [] })
    model.processes.push({ requests: [], untried: held !== null, stopped: null, trial: null })
  }
  return { model, real }
}

describe('the hold of a token', () => {
  it('lets nothing be sent after a 401, in any process, but one trial by each that begins, until it is lifted', async () => {
    const which = fc.nat(1)
    const refused = fc.record({
      code: fc.constant(401 as const),
      reason: fc.constantFrom('a 401', 'another 401'),
      isDropped: fc.boolean(),
    })
    const answer: fc.Arbitrary<Answer> = fc.oneof(
      refused,
      fc.constantFrom<Answer>({ code: 200 }, { code: 500 }),
    )
    const deeds = fc.commands(
      [
        which.map(arrives),
        which.map(arrives),
        which.map(sends),
        which.map(givesUp),
        fc.tuple(which, answer).map(([one, how]) => answered(one, how)),
        fc.constant(resumes()),
      ],
      { maxCommands: 40, size: 'max' },
    )
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(null, LEFT), deeds, (held, all) =>
        fc.asyncModelRun(() => begin(held), all),
      ),
      { numRuns: 300 },
    )
  })

  it('stops all requests while that is still being written', async () => {
    const { promise: written, resolve: write } = Promise.withResolvers<void>()
    const store = createHoldStore()
    const writing = (why: string) => written.then(() => store.hold(why))
    const hold = createTokenHold({ ...store, hold: writing })

    const refused = hold.refused('401')
    expect(hold.check).toThrow(refusal('401'))
    await expect(hold.enter()).rejects.toThrow(refusal('401'))
    write()
    await refused

    expect(hold.check).toThrow(refusal('401'))
    expect(store.heldReason()).toBe('401')
  })

  it('stops all requests if that cannot be written', async () => {
    const store = createHoldStore()
    const hold = createTokenHold({ ...store, hold: () => Promise.reject(new Error('the disk is full')) })

    await expect(hold.refused('401')).rejects.toThrow('the disk is full')

    expect(hold.check).toThrow(refusal('401'))
  })
})
