import fs from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { PostgresAddress } from '../../../src/store/postgres/address.ts'
import { atEndOfFile } from '../../helpers/at-end-of-file.ts'
import { createSelfSigned } from '../../helpers/certificate.ts'
import { RESTLESS } from '../../helpers/in-process.ts'
import { items, pageOf, serve } from '../../helpers/list-server.ts'
import { newSchema, openReader, startPostgres } from '../../helpers/postgres.ts'
import { startProxy } from '../../helpers/proxy.ts'
import { createWorkspace, organization } from '../../helpers/workspace.ts'

// What a server, a role or a network refuses: exit code 4 with what to do, and no password in anything that is written.

const server = await startPostgres()
afterAll(() => server.stop())

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
  const run = (command: string) => workspace.run([command, '--log-level', 'trace'], { env, clock: RESTLESS })
  return { workspace, schema, run }
}

async function asAdmin(sql: string) {
  const ask = await openReader(newSchema(server), atEndOfFile)
  return ask(sql)
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
const refused = (why: RegExp) => ({ code: 4, stderr: matching(why) })

describe.skipIf(server.missing !== null)('a command ends with 4, and says what to do,', () => {
  it.each<[string, () => ReturnType<typeof at>, RegExp]>([
    ['nothing listens there', () => at({ port: 1 }), /cannot be reached/],
    ['there is no such database', () => at({ database: 'nowhere' }), /has no database nowhere: create it/],
    ['the server is too old', older, /is version 14: version 15 or later is needed/],
    [
      'there is no password, and the server wants one',
      () => at({ secret: '' }),
      /(?:asks for the password|refuses the role).*PGPASSFILE/,
    ],
  ])('where %s', async (_what, place, why) => {
    const { run } = await place()

    expect(await run('sync')).toMatchObject(refused(why))
  })

  it('where the role may not make a schema, and goes on once it may', async () => {
    const { run, schema } = await asRole('reader_only')
    const why = /does not let the role reader_only do this.*CREATE SCHEMA .* AUTHORIZATION reader_only/
    expect(await run('sync')).toMatchObject(refused(why))
    await asAdmin(`CREATE SCHEMA ${schema} AUTHORIZATION reader_only`)

    expect((await run('sync')).code).toBe(0)
  })

  it('where the schema is another program’s, and touches nothing of it', async () => {
    const { run, schema } = await at({})
    await asAdmin(`CREATE SCHEMA ${schema}; CREATE TABLE ${schema}.orders (theirs int)`)

    expect(await run('sync')).toMatchObject(refused(/is not a mirror, and has tables of somebody else/))
    expect(await asAdmin(`SELECT 1 FROM pg_tables WHERE schemaname = '${schema}'`)).toHaveLength(1)
  })

  it('where a newer program has made the schema', async () => {
    const { run, schema } = await at({})
    expect((await run('sync')).code).toBe(0)
    await asAdmin(`UPDATE ${schema}.sync_settings SET value = '999' WHERE name = 'version'`)

    for (const command of ['sync', 'status', 'resume'])
      expect(await run(command), command).toMatchObject(refused(/newer admin-mirror.*Use the newer version/))
  })

  it('where the server is a standby that only reads, but for commands that read', async () => {
    const { run } = await asRole('standby', 'SUPERUSER')
    await asAdmin('ALTER ROLE standby SET default_transaction_read_only = on')

    expect(await run('sync')).toMatchObject(refused(/is read-only: name the primary server/))
    expect(await run('status')).toMatchObject({ code: 0, stdout: matching(/never/) })
  })
})

describe.skipIf(server.missing !== null || process.env.TEST_POSTGRES_URL)(
  'the certificate of a server',
  () => {
    const { key, cert } = createSelfSigned()

    it('is asked for in vain where it speaks no TLS', async () => {
      const { run } = await at({ query: '&sslmode=verify-full' })

      const why = /speaks no TLS: switch TLS on there, or add sslmode=disable/
      expect(await run('sync')).toMatchObject(refused(why))
    })

    describe('that it has signed itself, for localhost,', () => {
      beforeAll(async () => {
        const [row] = await asAdmin('SHOW data_directory')
        const folder = String(row?.data_directory)
        const { uid, gid } = fs.statSync(folder)
        for (const [name, text] of Object.entries({ 'server.key': key, 'server.crt': cert })) {
          fs.writeFileSync(path.join(folder, name), text, { mode: 0o600 })
          fs.chownSync(path.join(folder, name), uid, gid)
        }
        await asAdmin('ALTER SYSTEM SET ssl = on')
        await server.restart()
      })

      it.each([
        ['trusted if the address names its authority', 'localhost', 'verify-full&sslrootcert=ca.pem', 0, /^/],
        ['refused if nobody has signed it', 'localhost', 'require', 4, /not trusted: .*sslrootcert=FILE/],
        ['refused if it is another host’s', '127.0.0.1', 'verify-ca&sslrootcert=ca.pem', 4, /certificate/],
      ])('is %s', async (_what, host, mode, code, says) => {
        const { run, workspace } = await at({ host, query: `&sslmode=${mode}` })
        fs.writeFileSync(workspace.file('ca.pem'), cert)

        expect(await run('sync')).toMatchObject({ code, stderr: matching(says) })
      })
    })
  },
)
