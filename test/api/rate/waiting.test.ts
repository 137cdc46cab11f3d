import { getEventListeners } from 'node:events'
import { describe, expect, it } from 'vitest'
import { createWaitReporter, orAborted } from '../../../src/api/rate/limiter.ts'
import { createObserver } from '../helpers/observer.ts'

const NEVER = new Promise<string>(() => {})

describe('a wait', () => {
  it('is reported again only if its reason or its end differs', () => {
    const { observer, reports } = createObserver()
    const tell = createWaitReporter(observer)

    for (const until of [1000, 1000, 2000]) tell('a pause', until)
    tell('a limit', 2000)
    tell('a limit', 2000)
    tell('a pause', 2000)

    expect(reports).toEqual([
      ['wait', 'a pause', 1000],
      ['wait', 'a pause', 2000],
      ['wait', 'a limit', 2000],
      ['wait', 'a pause', 2000],
    ])
  })
})

describe('a turn that may be aborted', () => {
  it.each<[string, () => Promise<string>]>([
    ['comes', () => Promise.resolve('its turn')],
    ['fails', () => Promise.reject(new Error('failed'))],
  ])('leaves nothing behind when it %s', async (_how, begin) => {
    const { signal } = new AbortController()
    const turn = begin()

    const outcome = orAborted(turn, signal)

    expect(getEventListeners(signal, 'abort')).toHaveLength(1)
    expect(await Promise.allSettled([outcome])).toEqual(await Promise.allSettled([turn]))
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })

  it('rejects with the reason of the signal', async () => {
    const stop = new AbortController()
    const outcome = orAborted(NEVER, stop.signal)

    stop.abort('SIGTERM')

    await expect(outcome).rejects.toBe('SIGTERM')
  })

  it('rejects at once if the signal is aborted already', async () => {
    await expect(orAborted(NEVER, AbortSignal.abort('SIGTERM'))).rejects.toBe('SIGTERM')
  })
})
