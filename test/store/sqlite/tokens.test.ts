import { describe, expect, it } from 'vitest'
import { type Connection, runRule } from '../../../src/store/sqlite/driver.ts'
import { createTokens } from '../../../src/store/sqlite/tokens.ts'
import { START, timeAt } from '../../helpers/clock.ts'
import { ACME, GLOBEX } from '../../helpers/jobs.ts'
import { openTestMirror, type TestMirror } from '../../helpers/test-mirror.ts'

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

const tokensOn = (connection: Connection, salt: string) =>
  createTokens({
    connection,
    transact: async (begin) => runRule(connection, begin()),
    wait: async (task) => task(),
    newSalt: () => salt,
  })

const use = (tokens: TestMirror['tokens'], token: string) =>
  tokens.useToken(ACME.id, tokens.fingerprint(token))

describe('a refused token', () => {
  it('holds its organizations, and all others with the same token', async () => {
    const { test, tokens, fingerprint } = await held()

    const hold = { configured: 1, held_since: timeAt(0), held_reason: 'refused (401)' }
    expect(organizations(test)).toEqual([
      { ...ACME, ...hold },
      { ...GLOBEX, ...hold },
    ])
    expect(tokens.holdOf(fingerprint).heldReason()).toBe('refused (401)')
    expect(tokens.holdOf(tokens.fingerprint('another')).heldReason()).toBeNull()
  })

  it.each<[string, (tokens: TestMirror['tokens']) => Promise<unknown>, (string | null)[], boolean]>([
    ['the same token is used again', (tokens) => use(tokens, TOKEN), [timeAt(0), timeAt(0)], true],
    ['one of them has another token', (tokens) => use(tokens, 'another'), [null, timeAt(0)], true],
    ['resume was typed for one of them', (tokens) => tokens.resume([ACME.id]), [null, timeAt(0)], false],
  ])('holds its organizations or not, once %s', async (_what, happen, since, isHeld) => {
    const { test, tokens, fingerprint } = await held()

    await happen(tokens)

    expect(organizations(test).map(({ held_since }) => held_since)).toEqual(since)
    // A later process has the mirror's salt, whatever it would make itself.
    const later = tokensOn(test.connection, 'another salt')
    expect(later.holdOf(later.fingerprint(TOKEN)).heldReason() !== null).toBe(isHeld)
    expect(later.fingerprint(TOKEN)).toBe(fingerprint)
  })

  it('is known by a fingerprint that is another one in every mirror', async () => {
    const fingerprints = []
    for (const salt of ['one salt', 'another salt']) {
      const { connection } = openTestMirror()
      connection.exec("DELETE FROM sync_settings WHERE name = 'salt'")
      const tokens = tokensOn(connection, salt)
      await tokens.register([])
      fingerprints.push(tokens.fingerprint(TOKEN))
    }

    expect(new Set(fingerprints).size).toBe(2)
  })

  it('stays refused for who still has it or has it again, though its organization goes on with another one, until resume', async () => {
    const { test, tokens, fingerprint } = await held()
    const sinceOf = () => organizations(test).map(({ held_since: since }) => since)
    const reasons = async () => [
      tokens.holdOf(fingerprint).heldReason(),
      await tokens.heldReasonOfOrganization(ACME.id, fingerprint),
    ]
    await tokens.resume([GLOBEX.id])
    await tokens.useToken(GLOBEX.id, tokens.fingerprint('of globex'))

    await use(tokens, 'another')
    expect([sinceOf(), await reasons()]).toEqual([
      [null, null],
      ['refused (401)', 'refused (401)'],
    ])

    await use(tokens, TOKEN)
    expect([sinceOf(), await reasons()]).toEqual([
      [timeAt(0), null],
      ['refused (401)', 'refused (401)'],
    ])

    expect(await tokens.resume([ACME.id])).toHaveLength(1)
    expect([sinceOf(), await reasons()]).toEqual([
      [null, null],
      [null, null],
    ])
  })

  it('holds an organization too that starts to use it later', async () => {
    const { test, tokens } = await held()
    const initech = { id: '11111111-2222-4333-8444-555555555555', name: 'initech', collections: ['orders'] }
    await tokens.register([...[ACME, GLOBEX].map((one) => ({ ...one, collections: ['orders'] })), initech])

    await tokens.useToken(initech.id, tokens.fingerprint(TOKEN))

    expect(await tokens.heldReasonOfOrganization(initech.id, tokens.fingerprint(TOKEN))).toEqual(
      expect.any(String),
    )
    expect(tokens.holdOf(tokens.fingerprint(TOKEN)).heldReason()).toEqual(expect.any(String))
    expect(organizations(test).every(({ held_since }) => held_since !== null)).toBe(true)
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
