import type { Sandbox } from './server.ts'

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
  baseUrl: ${quoted(sandbox.url)}

# The mirror: one SQLite file, made by the first sync. A relative path starts at this file's folder.
database: ${quoted(database)}

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
    token: ${quoted(token)}`
}

function variable(name: string): string {
  return `${name.toUpperCase().replaceAll('-', '_')}_TOKEN`
}

/** A JSON string is a YAML string too. A single dollar could begin the name of an environment variable. */
function quoted(text: string): string {
  return JSON.stringify(text.replaceAll('$', () => '$$'))
}
