import { expect, it } from 'vitest'
import { createScene } from '../helpers/scene.ts'

// An API that can be asked for what changed: what a refresh then brings, what it costs, and what is said where it ignores that. What
// is asked when: test/sync/refresh; what a store keeps of it: test/store/contract-refreshes.ts.

const MINUTE = 60_000
const FIRST = Date.UTC(2026, 10, 20)
const timeAt = (minute: number) => new Date(FIRST + minute * MINUTE).toISOString()

it('a refresh brings what changed for a few requests, until the API ignores the parameter, which is told and asked no more', async () => {
  let isHeeded = true
  const list = Array.from({ length: 200 }, (_, index) => ({
    id: index + 1,
    state: 'open',
    updated_at: timeAt(index),
  }))
  const changedSince = { parameter: 'updated_after', field: 'updated_at' }
  const { workspace, api, server } = await createScene({
    perPage: 25,
    settings: { collections: { establishments: false, orders: { newest: 'last', changedSince } } },
  })
  const { run, value } = workspace
  api.instead = (asked) => {
    const since = asked.query.get('updated_after')
    api.list = since && isHeeded ? list.filter((one) => one.updated_at > since) : list
    return null
  }
  const refresh = async () => {
    server.asked.length = 0
    const { code, logs } = await run(['sync', '--refresh'])
    expect(code).toBe(0)
    const told = logs.filter(({ event }) => event === 'changed_since')
    return { requests: server.asked.length, told }
  }
  await run(['sync'])

  list[99] = { id: 100, state: 'paid', updated_at: timeAt(201) }
  const heeded = await refresh()
  expect(value('SELECT state FROM orders WHERE id = 100')).toBe('paid')
  expect(heeded.told).toEqual([])
  expect(heeded.requests).toBeLessThan(4)
  expect((await run(['check'])).stdout).toMatch(
    /^ok {4}acme orders changedSince +[\d,]+ rows? changed after \S+, says the API: it heeds updated_after$/m,
  )
  expect((await run(['status'])).stdout).not.toContain('changedSince')

  isHeeded = false
  expect((await run(['check'])).stdout).toMatch(/^warn {2}acme orders changedSince .*ignores the parameter/m)
  const first = await refresh()
  const second = await refresh()
  expect(first.told).toMatchObject([{ level: 'warn', msg: expect.stringContaining('changedSince is off') }])
  expect(second.told).toEqual([])
  expect(second.requests).toBeLessThan(first.requests)
  expect((await run(['status'])).stdout).toMatch(
    /^advice: changedSince of acme orders is off: .*updated_after/m,
  )
})
