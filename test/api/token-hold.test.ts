import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createTokenHold, type HoldStore, type TokenHold } from '../../src/api/token-hold.ts'
import { TokenRefusedError } from '../../src/errors.ts'
import { createHoldStore } from './helpers/stores.ts'

function refusal(reason: string): TokenRefusedError {
  return new TokenRefusedError(
    `${reason}. Nothing more is sent with it. Put a new token into the configuration, or run "admin-mirror resume" if it is valid again`,
  )
}

/** What two processes on one mirror promise. */
interface Model {
  /** Why the mirror holds the token. */
  held: string | null
  /** Why each process sends nothing; `forGood`: the mirror keeps no hold that could be lifted. */
  stopped: ({ reason: string; forGood: boolean } | null)[]
}

interface Real {
  store: HoldStore
  lift: () => void
  /** The mirror keeps no hold: no organization uses the token any more. */
  dropsHolds: boolean
  holds: TokenHold[]
}

function deed(
  name: string,
  run: (model: Model, real: Real) => Promise<void> | void,
): fc.AsyncCommand<Model, Real> {
  return { toString: () => name, check: () => true, run: async (model, real) => run(model, real) }
}

const asks = (which: number) =>
  deed(`process ${which} asks`, (model, { holds }) => {
    const stopped = model.stopped[which]
    if (stopped && !stopped.forGood && model.held === null) model.stopped[which] = null
    const reason = model.stopped[which]?.reason ?? model.held
    if (reason === null) expect(holds[which]?.check).not.toThrow()
    else expect(holds[which]?.check).toThrow(refusal(reason))
  })

const isRefused = (which: number, reason: string, isDropped: boolean) =>
  deed(`process ${which} gets ${reason}${isDropped ? ', which is not kept' : ''}`, async (model, real) => {
    model.stopped[which] = { reason, forGood: isDropped && model.held === null }
    if (!isDropped) model.held = reason
    real.dropsHolds = isDropped
    await real.holds[which]?.refused(reason)
  })

const resumes = deed('somebody types resume', (model, { lift }) => {
  model.held = null
  lift()
})

function begin(held: string | null): { model: Model; real: Real } {
  const { lift, ...kept } = createHoldStore(held)
  const real: Real = {
    store: { ...kept, hold: async (why) => (real.dropsHolds ? undefined : kept.hold(why)) },
    lift,
    dropsHolds: false,
    holds: [],
  }
  real.holds = [createTokenHold(real.store), createTokenHold(real.store)]
  return { model: { held, stopped: [null, null] }, real }
}

describe('the hold of a token', () => {
  it('lets nothing be sent after a 401, in any process, until it is lifted', async () => {
    const which = fc.nat(1)
    const refused = fc.tuple(which, fc.constantFrom('a 401', 'another 401'), fc.boolean())
    const deeds = fc.commands(
      [which.map(asks), refused.map((how) => isRefused(...how)), fc.constant(resumes)],
      { maxCommands: 30, size: 'max' },
    )
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(null, 'an old 401'), deeds, (held, all) =>
        fc.asyncModelRun(() => begin(held), all),
      ),
      { numRuns: 200 },
    )
  })

  it('stops all requests while that is still being written', async () => {
    const { promise: written, resolve: write } = Promise.withResolvers<void>()
    const store = createHoldStore()
    const hold = createTokenHold({ ...store, hold: (why) => written.then(() => store.hold(why)) })

    const refused = hold.refused('401')
    expect(hold.check).toThrow(refusal('401'))
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
