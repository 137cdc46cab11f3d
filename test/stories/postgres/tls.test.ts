import fs from 'node:fs'
import path from 'node:path'
import { Client } from 'pg'
import { afterAll, describe, expect, it } from 'vitest'
import { createSelfSigned } from '../../helpers/certificate.ts'
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

describe.skipIf(missing !== null)('a server’s certificate', () => {
  const OF_FILE = 'sslrootcert=authority.pem'

  it.each([
    [
      'trusted if the configuration names its authority',
      'localhost',
      `sslmode=verify-full&${OF_FILE}`,
      0,
      /^/,
    ],
    ['refused if nobody has signed it', 'localhost', 'sslmode=require', 4, /not trusted: .*sslrootcert=FILE/],
    ['refused if it is another host’s', '127.0.0.1', `sslmode=verify-ca&${OF_FILE}`, 4, /certificate/],
  ])('is %s', async (_what, host, query, code, says) => {
    const api = await serve((asked) => pageOf(items(3), asked))
    const { user, port, database, schema, password } = newSchema(server)
    const workspace = createWorkspace({
      baseUrl: api.url,
      organizations: [organization('acme', 1)],
      database: `postgres://${user}@${host}:${port}/${database}?schema=${schema}&${query}`,
    })
    fs.writeFileSync(workspace.file('authority.pem'), cert)

    const env = { PGPASSWORD: workspace.secret(password() ?? '') }
    const ended = await workspace.run(['sync'], { env })

    expect([ended.code, ended.stderr]).toEqual([code, expect.stringMatching(says)])
  })
})
