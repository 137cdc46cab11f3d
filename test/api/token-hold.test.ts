import { describe, expect, it } from 'vitest'
import { createTokenHold } from '../../src/api/token-hold.ts'
import { TokenRefusedError } from '../../src/errors.ts'
import { settle } from './helpers/clock.ts'
import { createHoldStore } from './helpers/stores.ts'

/** Enters, and records the outcome. */
function entering(hold: ReturnType<typeof createTokenHold>) {
  const entry: { state: 'waiting' | 'in' | 'out'; error: unknown } = { state: 'waiting', error: null }
  hold.enter().then(
    () => {
      entry.state = 'in'
    },
    (error: unknown) => {
      entry.state = 'out'
      entry.error = error
    },
  )
  return entry
}

function refusal(reason: string): TokenRefusedError {
  return new TokenRefusedError(
    `${reason}; nothing is sent with it. Put a new token into the configuration, or run "admin-mirror resume" if it is valid again`,
  )
}

function statesOf(entries: { state: string }[]): string[] {
  return entries.map(({ state }) => state)
}

describe('a token that is not held', () => {
  it('lets all requests in', async () => {
    const hold = createTokenHold(createHoldStore())

    const entries = [entering(hold), entering(hold), entering(hold)]
    await settle()

    expect(statesOf(entries)).toEqual(['in', 'in', 'in'])
    expect(hold.check).not.toThrow()
  })

  it('stays so whatever the responses are', async () => {
    const store = createHoldStore()
    const hold = createTokenHold(store)

    await hold.enter()
    hold.undecided()
    await hold.accepted()
    hold.undecided()

    expect(hold.check).not.toThrow()
    expect(store.heldReason()).toBeNull()
  })
})

describe('a token that is refused', () => {
  it('stops all requests, also those that have entered, and is stored', async () => {
    const store = createHoldStore()
    const hold = createTokenHold(store)
    await hold.enter()
    await hold.enter()

    await hold.refused('401')

    expect(store.heldReason()).toBe('401')
    expect(hold.check).toThrow(refusal('401'))
    await expect(hold.enter()).rejects.toThrow(refusal('401'))
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

  it('is not accepted by a response that was on its way before', async () => {
    const store = createHoldStore()
    const hold = createTokenHold(store)

    await hold.refused('401')
    await hold.accepted()
    hold.undecided()

    expect(store.heldReason()).toBe('401')
    expect(hold.check).toThrow('401')
  })

  it('is used again once the hold is lifted elsewhere', async () => {
    const store = createHoldStore()
    const hold = createTokenHold(store)
    await hold.refused('401')

    await store.lift()

    await expect(hold.enter()).resolves.toBeUndefined()
    expect(hold.check).not.toThrow()
  })

  it('stops a second hold on the same store before its next request', async () => {
    const store = createHoldStore()
    const [hold, other] = [createTokenHold(store), createTokenHold(store)]
    await other.enter()

    await hold.refused('401')

    expect(other.check).toThrow(refusal('401'))
    await expect(other.enter()).rejects.toThrow('401')
  })

  it('is let in again elsewhere after it was held there and lifted', async () => {
    const store = createHoldStore()
    const hold = createTokenHold(store)

    await store.hold('401')
    const held = entering(hold)
    await settle()
    await store.lift()
    const lifted = entering(hold)
    await settle()

    expect(statesOf([held, lifted])).toEqual(['out', 'in'])
  })
})

describe('a token that an earlier run left held', () => {
  it('lets exactly one in, which may send', async () => {
    const hold = createTokenHold(createHoldStore('401'))

    const entries = [entering(hold), entering(hold), entering(hold)]
    await settle()

    expect(statesOf(entries)).toEqual(['in', 'waiting', 'waiting'])
    expect(hold.isTrying()).toBe(true)
    expect(hold.check).not.toThrow()
    await settle()
    expect(statesOf(entries)).toEqual(['in', 'waiting', 'waiting'])
  })

  it('is being tried until its response comes, even if the hold is lifted meanwhile', async () => {
    const store = createHoldStore('401')
    const hold = createTokenHold(store)
    const entries = [entering(hold), entering(hold)]
    await settle()

    await store.lift()
    hold.check()
    await settle()

    expect(hold.isTrying()).toBe(true)
    expect(statesOf(entries)).toEqual(['in', 'waiting'])
  })

  it('lets all in once it is accepted, and is released', async () => {
    const store = createHoldStore('401')
    const hold = createTokenHold(store)
    const entries = [entering(hold), entering(hold), entering(hold)]
    await settle()

    await hold.accepted()
    await settle()

    expect(statesOf(entries)).toEqual(['in', 'in', 'in'])
    expect(store.heldReason()).toBeNull()
  })

  it('lets no other in once it is refused, with the new reason', async () => {
    const store = createHoldStore('an old 401')
    const hold = createTokenHold(store)
    const entries = [entering(hold), entering(hold), entering(hold)]
    await settle()

    await hold.refused('a new 401')
    await settle()

    expect(statesOf(entries)).toEqual(['in', 'out', 'out'])
    expect(entries[1]?.error).toEqual(refusal('a new 401'))
    expect(store.heldReason()).toBe('a new 401')
  })

  it('gives the trial to the next if the request was not sent, one at a time', async () => {
    const store = createHoldStore('401')
    const hold = createTokenHold(store)
    const entries = [entering(hold), entering(hold), entering(hold)]
    await settle()

    hold.undecided()
    await settle()

    expect(statesOf(entries)).toEqual(['in', 'in', 'waiting'])
    hold.undecided()
    await settle()
    expect(statesOf(entries)).toEqual(['in', 'in', 'in'])
    expect(store.heldReason()).toBe('401')
  })

  it('is not tried again if the request was sent and its response says nothing about it', async () => {
    const store = createHoldStore('401')
    const hold = createTokenHold(store)
    const entries = [entering(hold), entering(hold), entering(hold)]
    await settle()

    hold.check()
    hold.undecided()
    await settle()

    expect(statesOf(entries)).toEqual(['in', 'out', 'out'])
    expect(entries[1]?.error).toEqual(refusal('401'))
    expect(store.heldReason()).toBe('401')
    expect(hold.isTrying()).toBe(false)
  })

  it('still lets one in after a trial that no request took over', async () => {
    const hold = createTokenHold(createHoldStore('401'))
    await hold.enter()

    hold.undecided()
    const entries = [entering(hold), entering(hold)]
    await settle()

    expect(statesOf(entries)).toEqual(['in', 'waiting'])
  })

  it('is held in the next run, but not after it was lifted', async () => {
    const store = createHoldStore()
    await createTokenHold(store).refused('401')

    const next = createTokenHold(store)
    await next.enter()
    await next.accepted()

    expect(store.heldReason()).toBeNull()
    expect(createTokenHold(store).check).not.toThrow()
  })
})
