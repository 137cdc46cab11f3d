import { expect } from 'vitest'
import { pageOf, serve } from './list-server.ts'
import { newSchema, openReader, type TestServer } from './postgres.ts'
import { ACME } from './scene.ts'
import { createWorkspace, variable, type Workspace } from './workspace.ts'

/** A workspace whose mirror is a schema of its own; the password is looked for in all output. */
export function onPostgres(server: Pick<TestServer, 'url'>, baseUrl: string, more: object = {}) {
  const address = newSchema(server)
  const { user, host, port, database, schema } = address
  const place = `postgres://${user}:${variable('DB_PASSWORD')}@${host}:${port}/${database}?schema=${schema}`
  const settings = {
    baseUrl,
    organizations: [ACME],
    collections: { establishments: false },
    database: place,
    ...more,
  }
  const workspace = createWorkspace(settings)
  const password = workspace.secret(address.password() ?? '')
  const env = { DB_PASSWORD: password }
  const run: Workspace['run'] = (args) => workspace.run(args, { env })
  const start: Workspace['start'] = (args) => workspace.start(args, { env })
  return { address, place, workspace, run, start, rows: () => openReader(address) }
}

/** The same after a first sync of this list. `read`: what anybody reads there. */
export async function syncedOnPostgres(server: Pick<TestServer, 'url'>, list: readonly unknown[]) {
  const { url } = await serve((asked) => pageOf(list, asked))
  const postgres = onPostgres(server, url)
  expect(await postgres.run(['sync'])).toMatchObject({ code: 0 })
  return { ...postgres, read: await postgres.rows() }
}
