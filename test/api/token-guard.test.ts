import { describe, expect, it } from 'vitest'
import { createTokenGuard } from '../../src/api/token-guard.ts'
import { TokenRefusedError } from '../../src/errors.ts'
import { createHoldMemory } from './helpers/memory.ts'
import { settle } from './helpers/stepped-clock.ts'

/** Asks to enter and tells later what came of it. */
function entering(guard: ReturnType<typeof createTokenGuard>) {
  const entry: { state: 'waiting' | 'in' | 'out'; error: unknown } = { state: 'waiting', error: null }
  guard.enter().then(
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
  it('lets everybody in', async () => {
    const guard = createTokenGuard(createHoldMemory())

    const entries = [entering(guard), entering(guard), entering(guard)]
    await settle()

    expect(statesOf(entries)).toEqual(['in', 'in', 'in'])
    expect(guard.check).not.toThrow()
  })

  it('stays so whatever else is answered', async () => {
    const memory = createHoldMemory()
    const guard = createTokenGuard(memory)

    await guard.enter()
    guard.undecided()
    await guard.accepted()
    guard.undecided()

    expect(guard.check).not.toThrow()
    expect(memory.heldReason()).toBeNull()
  })
})

describe('a token that is refused', () => {
  it('stops everybody, also those who are in, and is remembered', async () => {
    const memory = createHoldMemory()
    const guard = createTokenGuard(memory)
    await guard.enter()
    await guard.enter()

    await guard.refused('401')

    expect(memory.heldReason()).toBe('401')
    expect(guard.check).toThrow(refusal('401'))
    await expect(guard.enter()).rejects.toThrow(refusal('401'))
  })

  it('stops everybody while that is still being written', async () => {
    const { promise: written, resolve: write } = Promise.withResolvers<void>()
    const memory = createHoldMemory()
    const hold = (why: string) => written.then(() => memory.hold(why))
    const guard = createTokenGuard({ ...memory, hold })

    const refused = guard.refused('401')
    expect(guard.check).toThrow(refusal('401'))
    await expect(guard.enter()).rejects.toThrow(refusal('401'))
    write()
    await refused

    expect(guard.check).toThrow(refusal('401'))
    expect(memory.heldReason()).toBe('401')
  })

  it('stops everybody, too, when that cannot be written', async () => {
    const memory = createHoldMemory()
    const guard = createTokenGuard({ ...memory, hold: () => Promise.reject(new Error('the disk is full')) })

    await expect(guard.refused('401')).rejects.toThrow('the disk is full')

    expect(guard.check).toThrow(refusal('401'))
  })

  it('is not accepted by an answer that was on its way before', async () => {
    const memory = createHoldMemory()
    const guard = createTokenGuard(memory)

    await guard.refused('401')
    await guard.accepted()
    guard.undecided()

    expect(memory.heldReason()).toBe('401')
    expect(guard.check).toThrow('401')
  })

  it('may be used again once the hold is lifted elsewhere', async () => {
    const memory = createHoldMemory()
    const guard = createTokenGuard(memory)
    await guard.refused('401')

    await memory.lift()

    await expect(guard.enter()).resolves.toBeUndefined()
    expect(guard.check).not.toThrow()
  })

  it('stops a second guard on the same memory before its next request', async () => {
    const memory = createHoldMemory()
    const [guard, other] = [createTokenGuard(memory), createTokenGuard(memory)]
    await other.enter()

    await guard.refused('401')

    expect(other.check).toThrow(refusal('401'))
    await expect(other.enter()).rejects.toThrow('401')
  })

  it('is let in elsewhere again when it was held there and lifted', async () => {
    const memory = createHoldMemory()
    const guard = createTokenGuard(memory)

    await memory.hold('401')
    const held = entering(guard)
    await settle()
    await memory.lift()
    const lifted = entering(guard)
    await settle()

    expect(statesOf([held, lifted])).toEqual(['out', 'in'])
  })
})

describe('a token that an earlier run left held', () => {
  it('lets exactly one in, who may send', async () => {
    const guard = createTokenGuard(createHoldMemory('401'))

    const entries = [entering(guard), entering(guard), entering(guard)]
    await settle()

    expect(statesOf(entries)).toEqual(['in', 'waiting', 'waiting'])
    expect(guard.isTrying()).toBe(true)
    expect(guard.check).not.toThrow()
    await settle()
    expect(statesOf(entries)).toEqual(['in', 'waiting', 'waiting'])
  })

  it('is being tried until its answer comes, also when the hold is lifted meanwhile', async () => {
    const memory = createHoldMemory('401')
    const guard = createTokenGuard(memory)
    const entries = [entering(guard), entering(guard)]
    await settle()

    await memory.lift()
    guard.check()
    await settle()

    expect(guard.isTrying()).toBe(true)
    expect(statesOf(entries)).toEqual(['in', 'waiting'])
  })

  it('lets all in once it is accepted, and is held no longer', async () => {
    const memory = createHoldMemory('401')
    const guard = createTokenGuard(memory)
    const entries = [entering(guard), entering(guard), entering(guard)]
    await settle()

    await guard.accepted()
    await settle()

    expect(statesOf(entries)).toEqual(['in', 'in', 'in'])
    expect(memory.heldReason()).toBeNull()
  })

  it('lets nobody else in once it is refused, with the new reason', async () => {
    const memory = createHoldMemory('an old 401')
    const guard = createTokenGuard(memory)
    const entries = [entering(guard), entering(guard), entering(guard)]
    await settle()

    await guard.refused('a new 401')
    await settle()

    expect(statesOf(entries)).toEqual(['in', 'out', 'out'])
    expect(entries[1]?.error).toEqual(refusal('a new 401'))
    expect(memory.heldReason()).toBe('a new 401')
  })

  it('gives its try to the next when the request was not made, one at a time', async () => {
    const memory = createHoldMemory('401')
    const guard = createTokenGuard(memory)
    const entries = [entering(guard), entering(guard), entering(guard)]
    await settle()

    guard.undecided()
    await settle()

    expect(statesOf(entries)).toEqual(['in', 'in', 'waiting'])
    guard.undecided()
    await settle()
    expect(statesOf(entries)).toEqual(['in', 'in', 'in'])
    expect(memory.heldReason()).toBe('401')
  })

  it('is tried no more when the request was made and its answer says nothing of it', async () => {
    const memory = createHoldMemory('401')
    const guard = createTokenGuard(memory)
    const entries = [entering(guard), entering(guard), entering(guard)]
    await settle()

    guard.check()
    guard.undecided()
    await settle()

    expect(statesOf(entries)).toEqual(['in', 'out', 'out'])
    expect(entries[1]?.error).toEqual(refusal('401'))
    expect(memory.heldReason()).toBe('401')
    expect(guard.isTrying()).toBe(false)
  })

  it('still lets one in after a try that nobody took over', async () => {
    const guard = createTokenGuard(createHoldMemory('401'))
    await guard.enter()

    guard.undecided()
    const entries = [entering(guard), entering(guard)]
    await settle()

    expect(statesOf(entries)).toEqual(['in', 'waiting'])
  })

  it('is held for a guard of the next run, and no more after it was lifted', async () => {
    const memory = createHoldMemory()
    await createTokenGuard(memory).refused('401')

    const next = createTokenGuard(memory)
    await next.enter()
    await next.accepted()

    expect(memory.heldReason()).toBeNull()
    expect(createTokenGuard(memory).check).not.toThrow()
  })
})
