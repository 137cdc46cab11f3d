import fs from 'node:fs'
import { Client } from 'pg'
import { describe, expect, it } from 'vitest'
import type { PostgresAddress } from '../../../src/store/postgres/address.ts'
import { items, pageOf, serve } from '../../helpers/list-server.ts'
import { newSchema, openDatabase, openReader } from '../../helpers/postgres.ts'
import { startProxy } from '../../helpers/proxy.ts'
import { createWorkspace, organization } from '../../helpers/workspace.ts'

// What a server, a role or a network refuses: exit code 4 with what to do, and no password in anything that is written.

const server = await openDatabase()

interface Place extends Partial<PostgresAddress> {
  query?: string
  secret?: string
}

/** A workspace whose mirror is at this place, and the password that must show nowhere. */
async function at({ query = '', secret, ...place }: Place) {
  const api = await serve((asked) => pageOf(items(3), asked))
  const address = { ...newSchema(server), ...place }
  const { user, host, port, database, schema } = address
  const workspace = createWorkspace({
    baseUrl: api.url,
    organizations: [organization('acme', 1)],
    collections: { establishments: false },
    database: `postgres://${user}@${host}:${port}/${database}?schema=${schema}${query}`,
  })
  const password = secret ?? address.password() ?? ''
  const env = { PGPASSWORD: password && workspace.secret(password) }
  /** Runs a command with the password in the environment. */
  const run = (command: string) => workspace.run([command, '--log-level', 'trace'], { env })
  return { workspace, address, run }
}

async function asAdmin(sql: string): Promise<void> {
  const address = newSchema(server)
  const client = new Client({ ...address, password: address.password() })
  await client.connect()
  try {
    await client.query(sql)
  } finally {
    await client.end()
  }
}

/** A mirror at this place of another role, which is made first. */
async function asRole(user: string, more = '') {
  const secret = `a password of ${user}`
  await asAdmin(`CREATE ROLE ${user} LOGIN PASSWORD '${secret}' ${more}`)
  return at({ user, secret })
}

/** A server whose words are those of an older one. */
async function older() {
  const proxy = await startProxy(newSchema(server).port)
  proxy.alter((bytes) => Buffer.from(bytes.toString('latin1').replace(/\b1800\d\d\b/, '140012'), 'latin1'))
  return at({ port: proxy.port })
}

const matching = (text: RegExp) => expect.stringMatching(text) as string

describe.skipIf(server.missing !== null)(
  'a command ends with 4, and says what to do,',
  { timeout: 60_000 },
  () => {
    it.each<[string, () => ReturnType<typeof at>, RegExp]>([
      ['there is no such database', () => at({ database: 'nowhere' }), /has no database nowhere: create it/],
      [
        'the server speaks no TLS',
        () => at({ query: '&sslmode=verify-full' }),
        /speaks no TLS: switch TLS on there, or add sslmode=disable/,
      ],
      ['the server is too old', older, /is version 14: version 15 or later is needed/],
      [
        'there is no password, and the server wants one',
        () => at({ secret: '' }),
        /(?:asks for the password|refuses the role).*PGPASSFILE/,
      ],
    ])('where %s', async (_what, place, says) => {
      const { run } = await place()

      expect(await run('sync')).toMatchObject({ code: 4, stderr: matching(says) })
    })

    it('where the role may not make a schema, and goes on once it may', async () => {
      const { run, address } = await asRole('reader_only')
      const refused = await run('sync')
      await asAdmin(`CREATE SCHEMA ${address.schema} AUTHORIZATION reader_only`)

      const cure = /does not let the role reader_only do this.*CREATE SCHEMA .* AUTHORIZATION reader_only/
      expect(refused).toMatchObject({ code: 4, stderr: matching(cure) })
      expect((await run('sync')).code).toBe(0)
    })

    it('where the schema is another program’s, and touches nothing of it', async () => {
      const { run, address } = await at({})
      await asAdmin(`CREATE SCHEMA ${address.schema}`)
      await asAdmin(`CREATE TABLE ${address.schema}.orders (theirs int)`)
      const why = /is not a mirror, and has tables of somebody else/
      expect(await run('sync')).toMatchObject({ code: 4, stderr: matching(why) })
      const rows = await openReader(address)
      expect(await rows('SELECT 1 FROM pg_tables WHERE schemaname = $1', address.schema)).toHaveLength(1)
    })

    it('where a newer program has made the schema', async () => {
      const { run, address } = await at({})
      expect((await run('sync')).code).toBe(0)
      await asAdmin(`UPDATE ${address.schema}.sync_settings SET value = '999' WHERE name = 'version'`)
      const stderr = matching(/newer admin-mirror.*Use the newer version/)
      for (const command of ['sync', 'status', 'resume'])
        expect(await run(command), command).toMatchObject({ code: 4, stderr })
    })

    it('where the server is a standby that only reads, but for commands that read', async () => {
      const { run } = await asRole('standby', 'SUPERUSER')
      await asAdmin('ALTER ROLE standby SET default_transaction_read_only = on')
      const stderr = matching(/is read-only: name the primary server/)
      expect(await run('sync')).toMatchObject({ code: 4, stderr })
      expect(await run('status')).toMatchObject({ code: 0, stdout: matching(/never/) })
    })
  },
)

it.skipIf(server.missing !== null)(
  'the password comes from the file that PGPASSFILE names, if nobody else may read it',
  async () => {
    const secret = 'with: and \\ in it'
    await asAdmin(`CREATE ROLE keeper LOGIN SUPERUSER PASSWORD '${secret}'`)
    const { workspace } = await at({ user: 'keeper', secret })
    const file = workspace.file('pgpass')
    fs.writeFileSync(file, '# a comment\nother:*:*:*:wrong\n*:*:*:keeper:with\\: and \\\\ in it\n', {
      mode: 0o600,
    })
    // A process of its own: pg itself reads the variable.
    const sync = () => workspace.start(['sync', '--log-level', 'trace'], { env: { PGPASSFILE: file } }).ended

    expect(await sync()).toMatchObject({ code: 0 })
    fs.chmodSync(file, 0o644)
    const stderr = matching(/PGPASSFILE names \(chmod 600\)|refuses the role/)
    expect(await sync()).toMatchObject({ code: 4, stderr })
  },
)
