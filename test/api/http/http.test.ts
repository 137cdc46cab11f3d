import { getEventListeners } from 'node:events'
import type { ServerResponse } from 'node:http'
import { brotliCompressSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { ask, endless } from '../helpers/http.ts'
import { serve } from '../helpers/server.ts'

function textOf(body: Uint8Array): string {
  return new TextDecoder().decode(body)
}

describe('an answer', () => {
  it.each([200, 204, 301, 401, 404, 429, 500])(
    'is returned whatever its status, with its body if that is needed: %i',
    async (status) => {
      const url = await serve((_request, response) =>
        response.writeHead(status, { 'x-some': 'thing', location: '/else' }).end('[1]'),
      )

      const response = await ask(url)

      expect(response.status).toBe(status)
      expect(response.headers['x-some']).toBe('thing')
      expect(textOf(response.body)).toBe([204, 301, 429].includes(status) ? '' : '[1]')
    },
  )

  describe.each([401, 404])('with status %i', (status) => {
    it.each<[string, Record<string, string>, (response: ServerResponse) => void]>([
      ['never ends', {}, (response) => response.write('{"mess')],
      ['breaks off', {}, (response) => response.write('{"mess', () => response.destroy())],
      [
        'is compressed and damaged',
        { 'content-encoding': 'gzip' },
        (response) => response.end('this is no gzip'),
      ],
      ['is endless', {}, endless],
    ])('keeps its status and headers though its body %s', async (_case, headers, answer) => {
      const url = await serve((_request, response) => {
        response.writeHead(status, { ...headers, 'retry-after': '7' })
        answer(response)
      })

      // Waiting for a body that never ends would take this long.
      const response = await ask(url, { timeoutMs: 5000 })

      expect(response).toMatchObject({ status, headers: { 'retry-after': '7' } })
      expect(response.body).toHaveLength(0)
    })
  })

  it.each([300, 301, 399, 401, 429])('with status %i is returned before its body comes', async (status) => {
    const url = await serve((_request, response) => response.writeHead(status).write('{'))

    expect(await ask(url, { timeoutMs: 3_600_000 })).toMatchObject({ status })
  })

  it.each([
    ['gzip', gzipSync],
    ['br', brotliCompressSync],
    ['zstd', zstdCompressSync],
  ])('is returned as bytes, decompressed: %s', async (encoding, compress) => {
    const url = await serve((_request, response) => {
      response.setHeader('content-encoding', encoding)
      response.end(compress(Buffer.from([0x5b, 0xff, 0x5d])))
    })

    expect([...(await ask(url)).body]).toEqual([0x5b, 0xff, 0x5d])
  })
})

describe('an abort', () => {
  it.each<[string, (response: ServerResponse) => void]>([
    ['before the headers', () => {}],
    ['in mid-body', (response) => void response.write('[1,')],
  ])('ends a request at once, with its own reason: %s', async (_case, answer) => {
    const stop = new AbortController()
    const closed = Promise.withResolvers<void>()
    const url = await serve((request, response) => {
      answer(response)
      request.socket.on('close', () => closed.resolve())
      setImmediate(() => stop.abort(new Error('stopped')))
    })

    await expect(ask(url, {}, stop.signal)).rejects.toThrow(new Error('stopped'))
    await closed.promise
  })

  it('is listened for only while the request runs', async () => {
    const url = await serve((_request, response) => response.end('[]'))
    const { signal } = new AbortController()

    await ask(url, {}, signal)

    expect(getEventListeners(signal, 'abort')).toEqual([])
  })

  it('before the request sends nothing', async () => {
    let asked = false
    const url = await serve((_request, response) => {
      asked = true
      response.end()
    })

    await expect(ask(url, {}, AbortSignal.abort(new Error('stopped')))).rejects.toThrow(new Error('stopped'))
    expect(asked).toBe(false)
  })
})
