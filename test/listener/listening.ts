import { setTimeout as sleep } from 'node:timers/promises'
import { type ListenerOptions, openListener } from '../../src/listener/listener.ts'
import type { StatusSource } from '../../src/listener/overview.ts'
import { atEndOfFile } from '../helpers/at-end-of-file.ts'

/** A listener on a free port of loopback, with what it failed at. */
export async function listen(given: StatusSource | null, more: Partial<ListenerOptions> = {}) {
  const listener = await openListener({
    host: '127.0.0.1',
    port: 0,
    now: Date.now,
    sleep: (ms) => sleep(ms),
    ...more,
  })
  atEndOfFile(() => listener.close())
  const errors: unknown[] = []
  if (given) listener.serve(given, (error) => errors.push(error))
  return {
    listener,
    errors,
    port: Number(new URL(listener.url).port),
    url: (path: string) => `${listener.url}${path}`,
  }
}
