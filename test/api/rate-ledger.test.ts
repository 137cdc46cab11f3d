import { describe, expect, it } from 'vitest'
import { createRateLedger, type GateMemory, type Left } from '../../src/api/rate-ledger.ts'
import { MINUTE, NOTHING, NOW, RULES, SECOND, told } from './helpers/budgets.ts'
import { createGateMemory, type TestGateMemory } from './helpers/memory.ts'
import { settle } from './helpers/stepped-clock.ts'

/** Two processes on one budget, and a clock that the test sets. */
function createScene(rules = {}) {
  const memory = createGateMemory()
  const clock = { time: NOW }
  const open = (by: string, its: GateMemory = memory) =>
    createRateLedger({ scope: 'a', by, rules: { ...RULES, ...rules }, memory: its, now: () => clock.time })
  return { memory, clock, open, one: open('one'), other: open('the other') }
}

/** A memory that from some time on has written, and does not say so before it is told to. */
function createSlow(memory: TestGateMemory) {
  const said = Promise.withResolvers<void>()
  let isSlow = false
  const change: TestGateMemory['change'] = async (scope, task) => {
    const result = await memory.change(scope, task)
    if (isSlow) await said.promise
    return result
  }
  const begin = () => {
    isSlow = true
  }
  return { memory: { ...memory, change }, begin, say: said.resolve }
}

type Ledger = ReturnType<typeof createRateLedger>

/** A request that leaves, as it may. */
function leave(ledger: Ledger): Left {
  const left = ledger.leave()
  if (left === null) throw new Error('nothing may leave')
  return left
}

/** One request and its answer. */
async function request(ledger: Ledger, announcement = NOTHING): Promise<void> {
  await ledger.ask()
  ledger.answered(leave(ledger), announcement)
  await ledger.tellOthers()
}

/** How many requests may leave one after the other, in this moment, without an answer. */
async function leaving(ledger: Ledger): Promise<number> {
  let count = 0
  for (; count < 100; count++) {
    await ledger.ask()
    if (!ledger.leave()) break
  }
  return count
}

describe('a process that nothing limits', () => {
  it('writes nothing but for its first request', async () => {
    const { memory, one } = createScene()
    await request(one)
    const first = memory.writes()

    for (let count = 0; count < 50; count++) await request(one)

    expect(memory.writes()).toBe(first)
  })
})

describe('a process that uses a block', () => {
  it('writes once for many requests', async () => {
    const { memory, one } = createScene()
    await request(one, told(60, 59))
    const before = memory.writes()

    expect(await leaving(one)).toBe(59)

    expect(memory.writes() - before).toBeLessThanOrEqual(4)
  })

  it('leaves something to another', async () => {
    const { one, other } = createScene()
    await request(one, told(60, 59))

    await one.ask()
    leave(one)

    expect(await leaving(other)).toBeGreaterThan(10)
  })

  it('never sends with another what one alone could not', async () => {
    const { one, other } = createScene()
    await request(one, told(60, 59))

    const counts = [await leaving(one), await leaving(other)]

    expect(counts).toEqual([59, 0])
  })

  it('takes it anew when ten seconds are over', async () => {
    const { memory, clock, one } = createScene()
    await request(one, told(60, 59))
    await one.ask()
    const before = memory.writes()
    clock.time += 10 * SECOND
    expect(one.leave()).toBeNull()

    await one.ask()

    expect(one.leave()).not.toBeNull()
    expect(memory.writes()).toBe(before + 1)
  })

  it('gives back what it does not need', async () => {
    const { one, other } = createScene()
    await request(one, told(20, 19))
    await one.ask()
    expect(await leaving(other)).toBe(0)

    await one.giveBack()

    expect(await leaving(other)).toBe(19)
  })

  it('may not send what another 429 has made void', async () => {
    const { clock, one, other } = createScene()
    await request(one, told(60, 59))
    await other.ask()
    leave(other)
    await one.ask()
    clock.time += 5

    other.throttled({ ...NOTHING, retryAfterMs: 0 }, 0)
    await other.tellOthers()
    clock.time += 2 * SECOND

    expect(one.leave()).toBeNull()
    expect(await leaving(one)).toBe(1)
  })

  it('goes on in the moment in which somebody forgot the pause', async () => {
    const { memory, one } = createScene()
    await one.ask()
    leave(one)
    one.throttled({ ...NOTHING, retryAfterMs: MINUTE }, 0)
    await one.tellOthers()

    memory.close('a', 0)
    await one.ask()

    expect(one.leave()).not.toBeNull()
  })
})

describe('what others have to know', () => {
  it.each<[string, (ledger: Ledger) => void]>([
    ['the first answer', (ledger) => ledger.answered(leave(ledger), NOTHING)],
    ['a window that begins', (ledger) => ledger.answered(leave(ledger), told(60, 59))],
    [
      'a budget that is used up for an hour',
      (ledger) => ledger.answered(leave(ledger), told(60, 0, 60 * MINUTE)),
    ],
    [
      'a 429',
      (ledger) => {
        leave(ledger)
        ledger.throttled(NOTHING, 0)
      },
    ],
  ])('is written at once: %s', async (_what, happen) => {
    const { memory, one, other } = createScene()
    await one.ask()
    const before = memory.writes()

    happen(one)
    await one.tellOthers()

    expect(memory.writes()).toBe(before + 1)
    expect(other.view()).toEqual(one.view())
  })

  it('is written though it comes while something else is being written', async () => {
    const { memory, clock, open, one } = createScene()
    await request(one, told(60, 59))
    await one.giveBack()
    const slow = createSlow(memory)
    const other = open('the other', slow.memory)
    await other.ask()
    const left = leave(other)
    slow.begin()
    const written = other.giveBack()
    await settle()
    other.answered(left, told(60, 0, 60 * MINUTE))

    slow.say()
    await written
    await other.tellOthers()

    expect(memory.read('a').closedUntil).toBeGreaterThan(clock.time)
  })

  it('is when the next window began, though the process is killed after its first answer', async () => {
    const { clock, open, one } = createScene()
    await request(one, told(20, 19))
    clock.time += MINUTE + SECOND
    await request(one, told(20, 19))

    const next = open('the next')

    expect(next.view().window).toMatchObject({ remaining: 19, endsAt: clock.time + MINUTE + 250 })
  })

  it('is no answer that only counts down', async () => {
    const { memory, one } = createScene()
    await request(one, told(60, 59))
    await one.ask()
    const before = memory.writes()

    one.answered(leave(one), told(60, 58))
    await one.tellOthers()

    expect(memory.writes()).toBe(before)
  })

  it('is what somebody waits for, with its reason and its end', async () => {
    const { memory, one } = createScene()
    await request(one, told(60, 0))

    const { at, reason } = await one.ask()

    expect(memory.read('a')).toMatchObject({ waitingFor: reason, waitingUntil: at })
    expect(reason).toBe("the server's limit of 60 requests a minute")
  })

  it('is no wait that is over', async () => {
    const { memory, clock, one } = createScene()
    await request(one, told(60, 0))
    await one.ask()
    clock.time += MINUTE + SECOND

    await one.ask()

    expect(memory.read('a')).toMatchObject({ waitingFor: null, waitingUntil: 0 })
  })
})

async function meet429(ledger: Ledger): Promise<void> {
  await ledger.ask()
  leave(ledger)
  ledger.throttled(NOTHING, 0)
  await ledger.tellOthers()
}

describe('answers that announce nothing', () => {
  it('are counted once by each process when a 429 comes', async () => {
    const { clock, one, other } = createScene()
    for (let count = 0; count < 5; count++) await request(one)
    for (let count = 0; count < 3; count++) await request(other)

    await meet429(one)
    expect(one.view().unannounced.count).toBe(5)
    await other.ask()
    clock.time += 2 * SECOND
    await one.ask()
    await one.giveBack()

    expect(one.view().unannounced.count).toBe(8)
    expect(other.view().unannounced.count).toBe(8)
  })

  it('are no others', async () => {
    const { one } = createScene()
    await request(one, told(60, 59))

    await meet429(one)

    expect(one.view().unannounced.count).toBe(0)
  })

  it('are counted for the last minute, however long they have come', async () => {
    const { clock, one } = createScene()
    for (let second = 0; second < 150; second++) {
      await request(one)
      clock.time += SECOND
    }

    await meet429(one)

    expect(one.view().unannounced.count).toBe(59)
  })
})

describe('our own ceiling', () => {
  it('counts what was sent before a restart', async () => {
    const { clock, open, one } = createScene({ requestsPerMinute: 5 })
    await request(one)
    expect(await leaving(one)).toBe(4)
    await one.giveBack()
    clock.time += 30 * SECOND

    const { at } = await open('the next').ask()

    expect(at).toBe(NOW + MINUTE + 250)
  })

  it('counts what a killed process may have sent', async () => {
    const { clock, open, one } = createScene({ requestsPerMinute: 5 })
    await request(one)
    await one.ask()
    clock.time += 30 * SECOND

    expect(await leaving(open('the next'))).toBe(0)
    clock.time = NOW + 10 * SECOND + MINUTE + SECOND + 1
    expect(await leaving(open('the one after'))).toBe(1)
  })
})
