import { createServer } from 'node:net'
import { type Finding, fail, ok } from './finding.ts'

const NAME = 'http'

/** Whether the listener's port is free. A daemon that runs has it. */
export function checkPort(
  { host, port }: { host: string; port: number },
  isDaemonRunning: boolean,
): Promise<Finding> {
  const shown = `port ${port} of ${host}`
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', (error) => {
      const code = 'code' in error ? String(error.code) : 'unknown error'
      if (code === 'EADDRINUSE' && isDaemonRunning) resolve(ok(NAME, `${shown} is in use, and a daemon runs`))
      else
        resolve(fail(NAME, 2, `${shown} cannot be used (${code})`, 'choose another http.port or http.host'))
    })
    server.listen(port, host, () => server.close(() => resolve(ok(NAME, `${shown} is free`))))
  })
}
