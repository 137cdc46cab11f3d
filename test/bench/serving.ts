import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { ServerOptions, Told } from './page-server.ts'
import { CLEAN_ENV } from './processes.ts'

const SERVER = fileURLToPath(new URL('./page-server.ts', import.meta.url))

export interface Serving {
  /** The address of the API. */
  url: string
  /** The address of the first page. */
  list: string
  /** When each request came since this was asked the last time. */
  arrivals(): Promise<number[]>
}

/** Starts a server of orders, lets `task` ask it, and ends it. */
export async function whileServing<T>(
  { orders, gzip = false, latencyMs = 0, onDemand = false }: Partial<ServerOptions> & { orders: number },
  task: (serving: Serving) => Promise<T>,
): Promise<T> {
  const options: ServerOptions = { orders, gzip, latencyMs, onDemand }
  const child = fork(SERVER, [JSON.stringify(options)], { execArgv: [], env: CLEAN_ENV })
  const ended = once(child, 'exit')
  const died = ended.then(([code]) => {
    throw new Error(`the server of pages ended (${String(code)})`)
  })
  // At the end it is meant to.
  died.catch(() => {})
  const told = async () => {
    const [message] = await Promise.race([once(child, 'message'), died])
    return message as Told
  }
  try {
    const { url = '' } = await told()
    const arrivals = async () => {
      const answer = told()
      child.send('arrivals')
      return (await answer).arrivals ?? []
    }
    return await task({ url, list: `${url}/api/v1/admin/orders`, arrivals })
  } finally {
    if (child.connected) child.disconnect()
    await ended
  }
}
