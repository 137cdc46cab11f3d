import fs from 'node:fs'
import { Client } from 'pg'
import { describe, expect, it } from 'vitest'
import type { PostgresAddress } from '../../../src/store/postgres/connection.ts'
import { items, pageOf, serve } from '../../helpers/list-server.ts'
import { newSchema, openDatabase, openReader } from '../../helpers/postgres.ts'
import { startProxy } from '../../helpers/proxy.ts'
import { createWorkspace, organization, type Workspace } from '../../helpers/workspace.ts'

// What a server, a role or a network refuses: exit code 4 with what to do, and no password in anything that is written.

const server = await openDatabase()

const ACME = organization('acme', 1)

interface Place extends Partial<PostgresAddress> {
  query?: string
  secret?: string
}

/** A workspace whose mirror is at this place, and the password that must show nowhere. */
async function at(place: Place): Promise<Workspace & { address: PostgresAddress; secretText: string }> {
  const api = await serve((asked) => pageOf(items(3), asked))
  const address = { ...newSchema(server), ...place }
  const { user, host, port, database, schema } = address
  const query = place.query ?? ''
  const workspace = createWorkspace({
    baseUrl: api.url,
    organizations: [ACME],
    collections: { establishments: false },
    database: `postgres://${user}@${host}:${port}/${database}?schema=${schema}${query}`,
  })
  const secretText = workspace.secret(place.secret ?? address.password() ?? '')
  return { ...workspace, address, secretText }
}

async function asAdmin(sql: string, database = newSchema(server).database): Promise<void> {
  const address = newSchema(server)
  const client = new Client({ ...address, database, password: address.password() })
  await client.connect()
  try {
    await client.query(sql)
  } finally {
    await client.end()
  }
}

/** Runs a sync with the password in the environment. */
async function sync({ run, secretText }: Awaited<ReturnType<typeof at>>, env: Record<string, string> = {}) {
  const { code, stderr, stdout } = await run(['sync', '--log-level', 'trace'], {
    env: { PGPASSWORD: secretText, ...env },
  })
  return { code, text: stdout + stderr }
}

/** A mirror at this place of another role, which is made first. */
async function asRole(name: string, more = ''): Promise<Awaited<ReturnType<typeof at>>> {
  const secret = `a password of ${name}`
  await asAdmin(`CREATE ROLE ${name} LOGIN PASSWORD '${secret}' ${more}`)
  return at({ user: name, secret })
}

/** A mirror behind a network that changes what the server says. */
async function behind(change: (bytes: Buffer) => Buffer): Promise<Awaited<ReturnType<typeof at>>> {
  const proxy = await startProxy(newSchema(server).port)
  proxy.alter(change)
  return at({ port: proxy.port })
}

/** The words of an older server in the place of its own. */
function olderVersion(bytes: Buffer): Buffer {
  return Buffer.from(bytes.toString('latin1').replace(/\b1800\d\d\b/, '140012'), 'latin1')
}

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
      ['the server is too old', () => behind(olderVersion), /is version 14: version 15 or later is needed/],
    ])('where %s', async (_what, place, says) => {
      const { code, text } = await sync(await place())

      expect([code, text]).toEqual([4, expect.stringMatching(says)])
    })

    it('where the role may not make a schema, and goes on once it may', async () => {
      const scene = await asRole('reader_only')
      const refused = await sync(scene)
      await asAdmin(`CREATE SCHEMA ${scene.address.schema} AUTHORIZATION reader_only`)

      expect(refused.code).toBe(4)
      expect(refused.text).toMatch(
        /does not let the role reader_only do this.*CREATE SCHEMA .* AUTHORIZATION reader_only/,
      )
      expect((await sync(scene)).code).toBe(0)
    })

    it('where there is no password, and the server wants one', async () => {
      const scene = await at({})
      const { code, stderr } = await scene.run(['sync'])
      expect([code, stderr]).toEqual([
        4,
        expect.stringMatching(/(?:asks for the password|refuses the role).*PGPASSFILE/),
      ])
    })

    it('where the schema is another program’s, and touches nothing of it', async () => {
      const scene = await at({})
      await asAdmin(`CREATE SCHEMA ${scene.address.schema}`)
      await asAdmin(`CREATE TABLE ${scene.address.schema}.orders (theirs int)`)
      const { code, text } = await sync(scene)
      expect([code, text]).toEqual([
        4,
        expect.stringMatching(/is not a mirror, and has tables of somebody else/),
      ])
      const rows = await openReader(scene.address)
      expect(
        await rows('SELECT tablename FROM pg_tables WHERE schemaname = $1', scene.address.schema),
      ).toHaveLength(1)
    })

    it('where a newer program has made the schema', async () => {
      const scene = await at({})
      expect((await sync(scene)).code).toBe(0)
      await asAdmin(`UPDATE ${scene.address.schema}.sync_settings SET value = '999' WHERE name = 'version'`)
      for (const command of ['sync', 'status', 'resume']) {
        const { code, stderr } = await scene.run([command], { env: { PGPASSWORD: scene.secretText } })
        const newer = expect.stringMatching(/newer admin-mirror.*Use the newer version/)
        expect([command, code, stderr]).toEqual([command, 4, newer])
      }
    })

    it('where the server is a standby that only reads', async () => {
      const standby = await asRole('standby', 'SUPERUSER')
      await asAdmin('ALTER ROLE standby SET default_transaction_read_only = on')
      const { code, text } = await sync(standby)
      expect([code, text]).toEqual([4, expect.stringMatching(/is read-only: name the primary server/)])
      const reading = await standby.run(['status'], { env: { PGPASSWORD: standby.secretText } })
      expect(reading).toMatchObject({ code: 0, stdout: expect.stringMatching(/never/) as string })
    })
  },
)

describe.skipIf(server.missing !== null)('the password', () => {
  it('comes from the file that PGPASSFILE names, if nobody else may read it', async () => {
    await asAdmin("CREATE ROLE keeper LOGIN SUPERUSER PASSWORD 'with: and \\ in it'")
    const place = await at({ user: 'keeper', secret: 'with: and \\ in it' })
    const file = place.file('pgpass')
    fs.writeFileSync(file, '# a comment\nother:*:*:*:wrong\n*:*:*:keeper:with\\: and \\\\ in it\n', {
      mode: 0o600,
    })
    const env = { PGPASSFILE: file }

    // A process of its own: pg itself reads the variable.
    expect(await place.start(['sync', '--log-level', 'trace'], { env }).ended).toMatchObject({ code: 0 })
    fs.chmodSync(file, 0o644)
    const open = await place.start(['sync'], { env }).ended
    expect([open.code, open.stderr]).toEqual([
      4,
      expect.stringMatching(/PGPASSFILE names \(chmod 600\)|refuses the role/),
    ])
  })
})
