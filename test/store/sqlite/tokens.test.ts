import { describe, expect, it } from 'vitest'
import { makeSalt } from '../../../src/store/core/tokens.ts'
import { runRule } from '../../../src/store/sqlite/driver.ts'
import { START, timeAt } from '../../helpers/clock.ts'
import { ACME, GLOBEX, jobOf } from '../../helpers/jobs.ts'
import { beginTestWalk, openTestMirror, type TestMirror } from '../../helpers/test-mirror.ts'

const TOKEN = 'one-very-secret-token'
const HOUR = 3_600_000

function organizations(test: TestMirror) {
  return test.rows('SELECT id, name, configured, held_since, held_reason FROM organizations ORDER BY name')
}

/** Two organizations whose token was refused. */
async function held() {
  const test = openTestMirror()
  const { tokens } = test
  const fingerprint = tokens.fingerprint(TOKEN)
  for (const { id } of [ACME, GLOBEX]) await tokens.useToken(id, fingerprint)
  await tokens.hold([ACME.id, GLOBEX.id], fingerprint, 'refused (401)', timeAt(0))
  return { test, tokens, fingerprint }
}

const sinceOf = (test: TestMirror) => organizations(test).map(({ held_since }) => held_since)

it('sync_status has a line for each job that is configured or has rows, and for no other', async () => {
  const test = openTestMirror()
  const lists = () => test.rows('SELECT organization, collection, rows FROM sync_status ORDER BY 1, 2')
  const register = (collection: string) =>
    test.tokens.register([ACME, GLOBEX].map((one) => ({ ...one, collections: [collection] })))
  await register('orders')
  await (await beginTestWalk(test, jobOf())).saveItems('{"id":1}')

  await register('invoices')

  expect(lists()).toEqual([
    { organization: 'acme', collection: 'invoices', rows: 0 },
    { organization: 'acme', collection: 'orders', rows: 1 },
    { organization: 'globex', collection: 'invoices', rows: 0 },
  ])
})

describe('a refused token', () => {
  it('holds all organizations that use it, and its like in no other mirror', async () => {
    const { test, tokens, fingerprint } = await held()

    const hold = { configured: 1, held_since: timeAt(0), held_reason: 'refused (401)' }
    expect(organizations(test)).toEqual([
      { ...ACME, ...hold },
      { ...GLOBEX, ...hold },
    ])
    expect(tokens.holdOf(fingerprint).heldReason()).toBe('refused (401)')
    expect(tokens.holdOf(tokens.fingerprint('another')).heldReason()).toBeNull()
    // Whatever a later process would make itself; another mirror has another one.
    const salts = [test, openTestMirror()].map(({ connection }, index) => {
      if (index > 0) connection.exec("DELETE FROM sync_settings WHERE name = 'salt'")
      return runRule(
        connection,
        makeSalt(() => 'another salt'),
      )
    })
    expect(salts).toEqual(['a salt', 'another salt'])
  })

  it('stays held, also for who comes later or comes back to it, until resume', async () => {
    const { test, tokens, fingerprint } = await held()
    const use = (id: string, token: string) => tokens.useToken(id, tokens.fingerprint(token))
    const happened: [since: unknown[], reason: string | null][] = []
    const look = async () => happened.push([sinceOf(test), await tokens.heldReason(fingerprint)])

    await use(ACME.id, 'another')
    await look()
    await use(ACME.id, TOKEN)
    await look()
    await use(ACME.id, 'another')
    expect(await tokens.resume([ACME.id])).toEqual([])
    await look()
    // Nobody uses it then: a process may still have it.
    await use(GLOBEX.id, 'another')
    await tokens.resume([ACME.id])
    await look()
    await tokens.resume([ACME.id, GLOBEX.id])
    await look()
    await tokens.hold([GLOBEX.id], fingerprint, 'refused (401)', timeAt(0))
    expect(await tokens.resume([GLOBEX.id])).toEqual(['globex'])
    await use(ACME.id, TOKEN)
    await look()

    const reason = 'refused (401)'
    expect(happened).toEqual([
      [[null, timeAt(0)], reason],
      [[timeAt(0), timeAt(0)], reason],
      [[null, timeAt(0)], reason],
      [[null, null], reason],
      [[null, null], null],
      [[null, null], null],
    ])
  })
})

describe('a budget', () => {
  const kept = { closedUntil: START + HOUR, known: '{}', waitingFor: 'a limit', waitingUntil: START + 1000 }

  it('is empty at first, and then as it was last written', async () => {
    const test = openTestMirror()
    const { budgets } = test.tokens
    const first = await budgets.read('all')

    const version = await budgets.compareAndSet('all', first.version, () => kept)

    expect(first).toMatchObject({ closedUntil: 0, known: null })
    expect(await budgets.read('all')).toEqual({ closedUntil: START + HOUR, known: '{}', version })
    expect(test.rows('SELECT * FROM sync_gates')).toEqual([
      {
        scope: 'all',
        closed_until: timeAt(HOUR),
        known: '{}',
        waiting_for: 'a limit',
        waiting_until: timeAt(1000),
        version: 1,
      },
    ])
  })

  it('is not written over what another process made of it', async () => {
    const test = openTestMirror()
    const { budgets } = test.tokens
    await budgets.compareAndSet('all', (await budgets.read('all')).version, () => kept)
    const { version } = await budgets.read('all')
    const { budgets: others } = openTestMirror({ file: test.file }).tokens
    await others.compareAndSet('all', version, () => ({ ...kept, known: 'of the other' }))

    expect(await budgets.compareAndSet('all', version, () => kept)).toBeNull()

    expect(await budgets.read('all')).toMatchObject({ known: 'of the other' })
  })

  it.each<[string, (tokens: TestMirror['tokens']) => string, number]>([
    ['of the token that was used last', (tokens) => tokens.fingerprint(TOKEN), 0],
    ['of the organization', () => ACME.id, 0],
    ['of all', () => 'all', 0],
    ['of another token', (tokens) => tokens.fingerprint('another'), START + HOUR],
    ['of another organization', () => GLOBEX.id, START + HOUR],
  ])('is ended by resume, or not: that %s', async (_whose, scopeOf, expected) => {
    const { tokens } = openTestMirror()
    await tokens.useToken(ACME.id, tokens.fingerprint(TOKEN))
    const scope = scopeOf(tokens)
    const { version } = await tokens.budgets.read(scope)
    const closed = { ...kept, known: 'what was sent' }
    const written = await tokens.budgets.compareAndSet(scope, version, () => closed)

    await tokens.resume([ACME.id])

    const after = await tokens.budgets.read(scope)
    expect(after).toMatchObject({ closedUntil: expected, known: 'what was sent' })
    // Whoever read it before closes it no more.
    expect(after.version === written).toBe(expected !== 0)
  })
})
