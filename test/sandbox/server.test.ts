import { describe, expect, it } from 'vitest'
import { type Sandbox, startSandbox } from '../../src/sandbox/server.ts'
import { ESTABLISHMENTS, get, headersOf, idsOf, OPTIONS, ORDERS, read, start, walk } from './client.ts'

/** An answer without the port, which is in every link. */
async function textOf(sandbox: Sandbox, target: string, headers = headersOf(sandbox)): Promise<string> {
  const text = await (await get(sandbox, target, headers)).text()
  return text.replaceAll(new URL(sandbox.url).host, 'the.sandbox')
}

describe('an answer', () => {
  it('is chunked JSON without a length or an ETag', async () => {
    const sandbox = await start()

    const { headers } = await get(sandbox, ORDERS, { ...headersOf(sandbox), 'accept-encoding': 'identity' })

    expect(headers.get('content-type')).toBe('application/json')
    expect(headers.get('transfer-encoding')).toBe('chunked')
    expect(['content-length', 'etag', 'content-encoding'].map((name) => headers.get(name))).toEqual([
      null,
      null,
      null,
    ])
  })

  it('is gzipped if the request accepts it', async () => {
    const sandbox = await start()

    const packed = await get(sandbox, ORDERS, { ...headersOf(sandbox), 'accept-encoding': 'br, gzip' })
    const plain = await get(sandbox, ORDERS, { ...headersOf(sandbox), 'accept-encoding': 'identity' })

    expect(packed.headers.get('content-encoding')).toBe('gzip')
    expect(await packed.text()).toBe(await plain.text())
  })

  it('is the same from two sandboxes with one seed, and another for each seed and organization', async () => {
    const [one, alike, other] = [await start(), await start({ now: () => 5 }), await start({ seed: 8 })]
    for (const target of [ORDERS, ESTABLISHMENTS]) {
      const text = await textOf(one, target)
      expect(await textOf(alike, target)).toBe(text)
      expect(await textOf(other, target)).not.toBe(text)
      expect(await textOf(one, target, headersOf(one, 1))).not.toBe(text)
    }
  })

  it('has orders with an id and a reference number that no other has, of establishments that are there', async () => {
    const sandbox = await start({ orders: 500 })
    const orders = (await walk(sandbox, ORDERS)).flatMap(({ data }) => data) as Record<string, unknown>[]
    const shops = (await walk(sandbox, ESTABLISHMENTS)).flatMap(({ data }) => data)

    const known = new Set<unknown>(shops.map(({ id }) => id))
    expect(orders.every((order) => known.has(order.establishment_id))).toBe(true)
    const text = await (await get(sandbox, ORDERS)).text()
    const references = text.match(/(?<="reference_number":)[1-9]\d{18,19}(?=,)/g)
    expect(new Set(references).size).toBe(25)
    expect(new Set(orders.map(({ id }) => id)).size).toBe(500)
  })
})

describe('startSandbox', () => {
  it('rejects with EADDRINUSE when the port is in use', async () => {
    const port = Number(new URL((await start()).url).port)

    await expect(startSandbox({ ...OPTIONS, port })).rejects.toMatchObject({ code: 'EADDRINUSE' })
  })

  it('stops answering once closed, on connections that are kept alive too, and can be closed twice', async () => {
    const sandbox = await start()
    await (await get(sandbox, ORDERS)).arrayBuffer()

    await sandbox.close()
    await sandbox.close()

    await expect(get(sandbox, ORDERS)).rejects.toThrow('fetch failed')
  })
})

describe('as time goes by', () => {
  const HOUR = 3_600_000

  it('a live list gains orders at its end, loses some, and changes some', async () => {
    let now = 1_700_000_000_000
    const sandbox = await start({ orders: 200, live: true, speed: 5, now: () => now })
    const before = (await walk(sandbox, ORDERS)).flatMap(({ data }) => data)

    now += HOUR
    const pages = await walk(sandbox, ORDERS)

    const after = new Map(pages.flatMap(({ data }) => data).map((order) => [order.id, order]))
    const kept = before.filter(({ id }) => after.has(id))
    expect(kept.length).toBeLessThan(before.length)
    expect(after.size).toBe(pages[0]?.meta.total)
    expect(after.size).toBeGreaterThan(900)
    expect(kept.some(({ id, state }) => after.get(id)?.state !== state)).toBe(true)
    expect(idsOf(pages)).toEqual(idsOf(pages).toSorted((a, b) => a - b))
  })

  it('passes faster in the made-up world, but not for the rate limit', async () => {
    let now = 1_700_000_000_000
    const options = { orders: 200, live: true, requestsPerMinute: 2, now: () => now }
    const [fast, slow] = [await start({ ...options, speed: 60 }), await start(options)]
    const total = async (sandbox: typeof fast) => (await read(sandbox, ORDERS)).meta.total

    now += 20_000

    expect([await total(fast), await total(slow)]).toEqual([200 + 60 - 4, 201])
    expect((await get(fast, ORDERS)).status).toBe(200)
    expect((await get(fast, ORDERS)).status).toBe(429)
  })
})

describe('new orders first', () => {
  it('are the same orders the other way round, on every page and with filters', async () => {
    let now = 1_700_000_000_000
    const options = { orders: 200, live: true, now: () => now }
    const [first, last] = [await start({ ...options, order: 'first' }), await start(options)]

    now += 600_000

    for (const query of ['', '?state=paid', '?created_from=2025-01-01T00:30:00Z']) {
      const ids = idsOf(await walk(first, ORDERS + query))
      expect(ids.length).toBeGreaterThan(25)
      expect(ids).toEqual(idsOf(await walk(last, ORDERS + query)).toReversed())
    }
  })
})
