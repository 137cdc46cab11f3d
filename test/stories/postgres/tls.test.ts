import fs from 'node:fs'
import path from 'node:path'
import { Client } from 'pg'
import { afterAll, describe, expect, it } from 'vitest'
import { createSelfSigned } from '../../api/helpers/server.ts'
import { items, pageOf, serve } from '../../helpers/list-server.ts'
import { newSchema, startPostgres } from '../../helpers/postgres.ts'
import { createWorkspace, organization } from '../../helpers/workspace.ts'

// A server with a certificate that it has signed itself, for `localhost`.

const server = await startPostgres()
afterAll(() => server.stop())
const { key, cert } = createSelfSigned()
const missing =
  server.missing ?? (process.env.TEST_POSTGRES_URL ? 'the server is not ours to configure' : null)
if (missing === null) await switchOn()
else console.warn(missing)

async function switchOn(): Promise<void> {
  const address = newSchema(server)
  const client = new Client({ ...address, password: address.password() ?? '' })
  await client.connect()
  const { rows } = await client.query<{ data_directory: string }>('SHOW data_directory')
  const folder = rows[0]?.data_directory ?? ''
  const { uid, gid } = fs.statSync(folder)
  for (const [name, text] of [
    ['server.key', key],
    ['server.crt', cert],
  ] as const) {
    const file = path.join(folder, name)
    fs.writeFileSync(file, text, { mode: 0o600 })
    fs.chownSync(file, uid, gid)
  }
  await client.query('ALTER SYSTEM SET ssl = on')
  await client.end()
  await server.restart()
}

async function syncAt(host: string, query: string) {
  const api = await serve((asked) => pageOf(items(3), asked))
  const { user, port, database, schema, password } = newSchema(server)
  const workspace = createWorkspace({
    baseUrl: api.url,
    organizations: [organization('acme', 1)],
    collections: { establishments: false },
    database: `postgres://${user}@${host}:${port}/${database}?schema=${schema}&${query}`,
  })
  fs.writeFileSync(workspace.file('authority.pem'), cert)
  const { code, stderr } = await workspace.run(['sync'], {
    env: { PGPASSWORD: workspace.secret(password() ?? '') },
  })
  return { code, stderr }
}

describe.skipIf(missing !== null)('a server’s certificate', () => {
  it.each([
    [
      'is trusted if the configuration names its authority',
      'localhost',
      'sslmode=verify-full&sslrootcert=authority.pem',
      0,
      /^$/,
    ],
    [
      'is refused if nobody that is trusted has signed it',
      'localhost',
      'sslmode=require',
      4,
      /not trusted: .*sslrootcert=FILE/,
    ],
    [
      'is refused if it is that of another host',
      '127.0.0.1',
      'sslmode=verify-ca&sslrootcert=authority.pem',
      4,
      /certificate/,
    ],
  ])('%s', async (_what, host, query, code, says) => {
    const ended = await syncAt(host, query)

    expect(ended.code).toBe(code)
    if (code !== 0) expect(ended.stderr).toMatch(says)
  })
})
