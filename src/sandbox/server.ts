import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import { createData, createOrganizations, type Organization } from './data.ts'
import { type Answer, type Api, answer, type CollectionName, createThrottle, type Listing } from './routes.ts'
import { createFinder, type Filters } from './selection.ts'

export interface SandboxOptions {
  /** 0: any that is free. */
  port: number
  /** Of each organization. */
  orders: number
  /** Of each organization. */
  establishments: number
  organizations: number
  /** Of each organization's user; 0: no limit. */
  requestsPerMinute: number
  /** The same seed gives the same organizations, tokens and items. */
  seed: number
  /** Orders come, change and go while the sandbox runs. Otherwise nothing ever changes. */
  live: boolean
  /** How many times faster than real time passes in the made-up world; not for the rate limit. */
  speed: number
  /** The end of the list of orders where new ones appear. */
  order: 'first' | 'last'
  /** Epoch milliseconds. */
  now: () => number
}

export interface Sandbox {
  /** The base address, without a slash at its end. */
  url: string
  organizations: Organization[]
  /** Ends open connections too. */
  close: () => Promise<void>
}

/**
 * Serves a made-up Administration API on 127.0.0.1, shaped like a real Laravel server. Rejects with Node's error when
 * it cannot listen (`code` is EADDRINUSE for a port in use).
 */
export async function startSandbox(options: SandboxOptions): Promise<Sandbox> {
  const api = createSandboxApi(options)
  const server = createServer((request, response) => {
    const { method = '', url = '', headers } = request
    send(request, response, answer(api, { method, target: url, headers }))
  })
  // nginx's value: Node's 5 seconds would end connections that a client is about to use again.
  server.keepAliveTimeout = 75_000
  await once(server.listen(options.port, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    organizations: [...api.organizations],
    close: () => close(server),
  }
}

function createSandboxApi(options: SandboxOptions): Api {
  const { seed, requestsPerMinute, live, speed, now } = options
  const started = now()
  const tick = () => (live ? Math.max(0, Math.floor(((now() - started) * speed) / 1000)) : 0)
  const take = createThrottle(requestsPerMinute)
  const organizations = createOrganizations(options.organizations, seed)
  const lists = organizations.map((_, organization) => {
    const data = createData({ ...options, organization })
    return {
      orders: { ...data.orders, find: createFinder(data.orders) },
      establishments: { ...data.establishments, find: createFinder(data.establishments) },
    }
  })

  function listOf(organization: Organization, collection: CollectionName) {
    const list = lists[organizations.indexOf(organization)]?.[collection]
    if (list === undefined) throw new Error(`Expected a list for organization ${organization.name}.`)
    return list
  }

  function listing(organization: Organization, collection: CollectionName): Listing {
    // One moment for the whole answer: its total and its items must agree.
    const moment = tick()
    const list = listOf(organization, collection)
    const find = (filters: Filters) => list.find(filters, moment)
    const isNewestFirst = collection === 'orders' && options.order === 'first'
    return {
      find: isNewestFirst ? (filters) => find(filters).toReversed() : find,
      itemAt: (index) => list.itemAt(index, moment),
    }
  }

  const throttle = requestsPerMinute === 0 ? null : (token: string) => take(token, now())
  return { organizations, listing, throttle, requestsPerMinute }
}

/** Sends an answer like nginx in front of PHP: chunked, without length and ETag, gzipped if the request accepts it. */
function send(request: IncomingMessage, response: ServerResponse, { status, headers, body }: Answer): void {
  const packed = /\bgzip\b/.test(request.headers['accept-encoding'] ?? '')
  const encoding = packed ? { 'Content-Encoding': 'gzip' } : {}
  response.writeHead(status, {
    ...headers,
    'Cache-Control': 'no-cache, private',
    Vary: 'Accept-Encoding',
    ...encoding,
  })
  // A separate write: with `end(body)` Node would add the length.
  response.write(packed ? gzipSync(body, { level: 1 }) : body)
  response.end()
}

async function close(server: Server): Promise<void> {
  if (!server.listening) return
  const closed = once(server.close(), 'close')
  server.closeAllConnections()
  await closed
}

// Not the default of a configuration: made-up rows must never meet real ones in one mirror.
const DATABASE = 'sandbox-mirror.db'

/** Returns a YAML configuration that mirrors a sandbox, with comments for people who see their first one. */
export function sandboxConfiguration(
  sandbox: Pick<Sandbox, 'url' | 'organizations'>,
  /** The mirror's file, relative to the configuration's folder unless absolute. */
  { database = DATABASE }: { database?: string } = {},
): string {
  return `# Mirrors the made-up Administration API of "admin-mirror sandbox". Keep that command running, and in another terminal
# use this file with --config: "sync" copies the lists once, "status" tells how fresh they are, "query" asks the mirror.

api:
  # The sandbox listens on this machine only. For the real thing: the https:// address of your API.
  baseUrl: ${yamlText(sandbox.url)}

# The mirror: one SQLite file, made by the first sync. A relative path starts at this file's folder.
database: ${yamlText(database)}

# To see how it calls when somebody has to act, take the # from these lines, and look at http://127.0.0.1:9464/check.
# "How soon you are told" in config/DEPLOYMENT.md says more.
# schedule: "* * * * *"
# http: { host: 127.0.0.1, port: 9464 }

# Whose lists to copy. Each organization is named by its UUID, has a short name for the command line, and a token of its own.
organizations:
${sandbox.organizations.map(organizationEntry).join('\n')}
`
}

function organizationEntry({ id, name, token }: Sandbox['organizations'][number]): string {
  return `  - id: ${id}
    name: ${name}
    # A made-up token, so it may stand here. A real one belongs in the environment: token: \${${variable(name)}}
    token: ${yamlText(token)}`
}

function variable(name: string): string {
  return `${name.toUpperCase().replaceAll('-', '_')}_TOKEN`
}

/** A JSON string is a YAML string too. A single dollar could begin the name of an environment variable. */
function yamlText(text: string): string {
  return JSON.stringify(text.replaceAll('$', () => '$$'))
}
