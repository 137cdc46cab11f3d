import { describe, expect, it } from 'vitest'
import { register } from '../../../src/store/core/tokens.ts'
import { runRule, SQLITE } from '../../../src/store/sqlite/driver.ts'
import { START, timeAt } from '../../helpers/clock.ts'
import { ACME, GLOBEX } from '../../helpers/jobs.ts'
import { openTestMirror, registered } from '../../helpers/test-mirror.ts'
import { begin } from '../stage.ts'

const TOKEN = 'one-very-secret-token'
const HOUR = 3_600_000
const REASON = 'refused (401)'

/** Two organizations whose token was refused. */
async function held() {
  const test = openTestMirror()
  const { tokens } = test
  const fingerprint = tokens.fingerprint(TOKEN)
  for (const { id } of [ACME, GLOBEX]) await tokens.useToken(id, fingerprint)
  await tokens.hold([ACME.id], fingerprint, REASON, timeAt(0))
  return { test, tokens, fingerprint }
}

it('sync_status has a line for each job that is configured or has rows, and for no other', async () => {
  const test = openTestMirror()
  const lists = () => test.rows('SELECT organization, collection, rows FROM sync_status ORDER BY 1, 2')
  const configure = (collection: string) => runRule(test.connection, register(SQLITE, registered(collection)))
  configure('orders')
  await (await begin(test)).page('{"id":1}')

  configure('invoices')

  expect(lists()).toEqual([
    { organization: 'acme', collection: 'invoices', rows: 0 },
    { organization: 'acme', collection: 'orders', rows: 1 },
    { organization: 'globex', collection: 'invoices', rows: 0 },
  ])
})

describe('a refused token', () => {
  it('holds all organizations that use it, until resume, which tells them', async () => {
    const { test, tokens, fingerprint } = await held()

    const shown = 'SELECT id, name, configured, held_since, held_reason FROM organizations ORDER BY name'
    expect(test.rows(shown)).toEqual(
      [ACME, GLOBEX].map((one) => ({ ...one, configured: 1, held_since: timeAt(0), held_reason: REASON })),
    )
    expect(await tokens.heldReason(fingerprint)).toBe(REASON)
    expect(await tokens.heldReason(tokens.fingerprint('another'))).toBeNull()
    expect(await tokens.resume([ACME.id])).toEqual(['acme', 'globex'])
    expect(await tokens.resume([ACME.id])).toEqual([])
  })

  it('stays held, also for who comes later or comes back to it, until resume', async () => {
    const { test, tokens, fingerprint } = await held()
    const use = ({ id }: typeof ACME, token: string) => tokens.useToken(id, tokens.fingerprint(token))
    const resume = (...ones: (typeof ACME)[]) => tokens.resume(ones.map(({ id }) => id))
    const deeds: [deed: () => Promise<unknown>, holding: string, reason: string | null][] = [
      [() => use(ACME, 'another'), 'globex', REASON],
      [() => use(ACME, TOKEN), 'acme globex', REASON],
      [() => use(ACME, 'another').then(() => resume(ACME)), 'globex', REASON],
      // Nobody uses it then: a process may still have it.
      [() => use(GLOBEX, 'another').then(() => resume(ACME)), '', REASON],
      [() => resume(ACME, GLOBEX), '', null],
      [() => tokens.hold([GLOBEX.id], fingerprint, REASON, timeAt(0)), 'globex', REASON],
      [() => resume(GLOBEX), '', null],
      [() => use(ACME, TOKEN), '', null],
    ]
    for (const [index, [deed, holding, reason]] of deeds.entries()) {
      await deed()
      const names = test.rows('SELECT name FROM organizations WHERE held_since IS NOT NULL ORDER BY name')
      expect([index, names.map(({ name }) => name).join(' ')]).toEqual([index, holding])
      expect([index, await tokens.heldReason(fingerprint)]).toEqual([index, reason])
    }
  })
})

describe('a budget', () => {
  const kept = { closedUntil: START + HOUR, known: '{}', waitingFor: 'a limit', waitingUntil: START + 1000 }

  it('is empty at first, then as it was last written, and not written over what another process made of it', async () => {
    const test = openTestMirror()
    const { budgets } = test.tokens
    const { budgets: others } = openTestMirror({ file: test.file }).tokens
    const first = await budgets.read('all')
    expect(first).toMatchObject({ closedUntil: 0, known: null })

    const version = await budgets.compareAndSet('all', first.version, () => kept)

    expect(await others.read('all')).toEqual({ closedUntil: START + HOUR, known: '{}', version })
    const times = { closed_until: timeAt(HOUR), waiting_until: timeAt(1000) }
    expect(test.rows('SELECT * FROM sync_gates')).toEqual([
      { scope: 'all', known: '{}', waiting_for: 'a limit', version: 1, ...times },
    ])
    await others.compareAndSet('all', version ?? '', () => ({ ...kept, known: 'of the other' }))
    expect(await budgets.compareAndSet('all', version ?? '', () => kept)).toBeNull()
    expect(await budgets.read('all')).toMatchObject({ known: 'of the other' })
  })

  it('is ended by resume where it is of the token that was used last, of the organization or of all', async () => {
    const { tokens } = openTestMirror()
    const { budgets, fingerprint } = tokens
    await tokens.useToken(ACME.id, fingerprint(TOKEN))
    const scopes = [fingerprint(TOKEN), ACME.id, 'all', fingerprint('another'), GLOBEX.id]
    const written: (string | null)[] = []
    for (const scope of scopes) written.push(await budgets.compareAndSet(scope, '0', () => kept))

    await tokens.resume([ACME.id])

    const after = await Promise.all(scopes.map((scope) => budgets.read(scope)))
    const closedUntil = START + HOUR
    expect(after).toMatchObject(
      [0, 0, 0, closedUntil, closedUntil].map((at) => ({ closedUntil: at, known: '{}' })),
    )
    // Whoever read one that was ended before closes it no more.
    const isAsWritten = after.map(({ version }, index) => version === written[index])
    expect(isAsWritten).toEqual([false, false, false, true, true])
  })
})
