import { once } from 'node:events'
import fs from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createApi, type Organization, type SandboxOptions } from './api.ts'

export interface Sandbox {
  /** The base address, without a slash at its end. */
  url: string
  organizations: Organization[]
  /** Ends open connections too. */
  close: () => Promise<void>
}

/** Serves a made-up Administration API on 127.0.0.1. Rejects with Node's error if it cannot listen. `port`: 0 for any that is free. */
export async function startSandbox({
  port,
  ...options
}: SandboxOptions & { port: number }): Promise<Sandbox> {
  const { organizations, answer } = createApi(options)
  const server = createServer((request, response) => {
    const { status, headers, body } = answer(request)
    response.writeHead(status, { 'Content-Type': 'application/json', ...headers }).end(JSON.stringify(body))
  })
  // nginx's value: Node's 5 seconds would end connections that a client is about to use again.
  server.keepAliveTimeout = 75_000
  await once(server.listen(port, '127.0.0.1'), 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    organizations,
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** The first line of a configuration of a sandbox. */
const OURS = '# Mirrors the made-up Administration API of "admin-mirror sandbox", which has to run meanwhile.'

/** Whether there is no such file, or a sandbox wrote it: it may be the user's own configuration. */
export function isOurs(file: string): boolean {
  try {
    const stat = fs.statSync(file, { throwIfNoEntry: false })
    return stat === undefined || (stat.isFile() && fs.readFileSync(file, 'utf8').startsWith(OURS))
  } catch {
    // Nobody may look at it, or its name is none.
    return false
  }
}

/** Beside the configuration. It is no default: made-up rows must never meet real ones. */
export const SANDBOX_MIRROR = 'sandbox-mirror.db'

/** Returns a configuration that mirrors a sandbox. */
export function sandboxConfiguration({ url, organizations }: Pick<Sandbox, 'url' | 'organizations'>): string {
  const entries = organizations.map(
    ({ id, name, token }) => `  - { id: ${id}, name: ${name}, token: ${JSON.stringify(token)} }\n`,
  )
  return `${OURS}
# Use this file with --config: "sync" copies the lists once, "status" tells how fresh they are, "query" asks the mirror.
api:
  baseUrl: ${url}
database: ${SANDBOX_MIRROR}
organizations: # The tokens are made up, so they may stand here. A real one belongs in the environment.
${entries.join('')}`
}
