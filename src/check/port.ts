import { once } from 'node:events'
import { createServer } from 'node:net'
import { type Finding, fail, ok } from './finding.ts'

const NAME = 'http'

/** Whether the listener's port is free. A daemon that runs has it. */
export async function checkPort(
  { host, port }: { host: string; port: number },
  isDaemonRunning: boolean,
): Promise<Finding> {
  const shown = `port ${port} of ${host}`
  const server = createServer()
  try {
    await once(server.listen(port, host), 'listening')
    await once(server.close(), 'close')
    return ok(NAME, `${shown} is free`)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error'
    if (code === 'EADDRINUSE' && isDaemonRunning) return ok(NAME, `${shown} is in use, and a daemon runs`)
    return fail(NAME, 2, `${shown} cannot be used (${code})`, 'choose another http.port or http.host')
  }
}
