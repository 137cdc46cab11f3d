import type { Config } from '../../config/config.ts'
import { InterruptedError, UsageError } from '../../errors.ts'
import type { Server } from '../../store/postgres/server/server.ts'
import { makeConfigured } from '../../store/postgres/tables/configured.ts'
import {
  collectionsOf,
  dropUnused,
  forgetJob,
  forgetOrganization,
  holdingsOf,
  knownOrganizations,
} from '../../store/postgres/walks/forget.ts'
import { printable } from '../../text.ts'
import { type ForgetOptions, holdingsText, ONLY_WITH_YES, type Target } from '../forget/forget.ts'
import { collectionsToForget, organizationToForget } from '../forget/forget-target.ts'
import type { Runtime } from '../runtime.ts'
import { openPostgresForReading } from './open.ts'
import { withPostgres } from './with-postgres.ts'

/** `forget` on a PostgreSQL mirror. The server overwrites what is deleted when it cleans its tables (VACUUM). */
export async function forgetOnPostgres(
  runtime: Runtime,
  config: Config,
  org: string,
  { collection: collections, yes }: ForgetOptions,
): Promise<number> {
  const reader = await openPostgresForReading(config, runtime)
  try {
    const target = await targetOf(reader, config, org, collections)
    if (yes !== true) throw new UsageError(await whatWouldGo(reader, target))
    if (!reader) {
      runtime.stderr.write(`there is nothing to forget: there is no mirror at ${config.database} yet\n`)
      return 0
    }
  } finally {
    await reader?.close()
  }
  return withPostgres(config, runtime, async ({ server, leases, now }) => {
    const target = await targetOf(server, config, org, collections)
    const { id, name } = target.organization
    const configured = config.organizations.find((one) => one.id === id)
    let code = 0
    for (const collection of target.collections) {
      const shown = `${printable(name)} ${collection}`
      const job = { organizationId: id, collection }
      if (!(await leases.lock(id, collection))) {
        runtime.stderr.write(`BUSY: ${shown}: another worker is working on it; nothing of it was deleted\n`)
        code = 1
        continue
      }
      try {
        const gone = await holdingsOf(server, job)
        const isConfigured = configured?.collections.some((one) => one.name === collection) === true
        const at = new Date(now()).toISOString()
        await takeOver(server, job)
        if (!(await forgetJob(server, job, { isConfigured, signal: runtime.signal, at })))
          throw new InterruptedError('stopped before everything was forgotten; the same command continues')
        runtime.stdout.write(`forgot ${shown}: ${holdingsText(gone)}\n`)
        if (await dropUnused(server, collection))
          runtime.stdout.write(`nothing is left of ${collection}, so its columns and views are gone, too\n`)
      } finally {
        await leases.unlock(id, collection)
      }
    }
    await makeConfigured(server, config.collections)
    if (target.collections.length === 0)
      runtime.stdout.write(`the mirror holds nothing of ${printable(name)}\n`)
    if (!configured) await forgetOrganization(server, id)
    return code
  })
}

/** A worker that was cut off can write nothing of the job any more. */
async function takeOver(server: Server, job: { organizationId: string; collection: string }): Promise<void> {
  await server.rows(
    "UPDATE sync_jobs SET epoch = nextval('sync_epochs') WHERE organization_id = $1 AND collection = $2",
    [job.organizationId, job.collection],
  )
}

/** `reader`: null without a mirror. Throws UsageError for names that neither the mirror nor the configuration has. */
async function targetOf(
  reader: Server | null,
  config: Config,
  org: string,
  collections: string[],
): Promise<Target> {
  const mirrored = reader ? await knownOrganizations(reader) : []
  const organization = organizationToForget(org, mirrored, config.organizations)
  const known = reader ? await collectionsOf(reader, organization.id) : []
  const configured = config.organizations.find(({ id }) => id === organization.id)?.collections ?? []
  const names = configured.map(({ name }) => name)
  return { organization, collections: collectionsToForget(collections, known, names) }
}

async function whatWouldGo(reader: Server | null, { organization, collections }: Target): Promise<string> {
  if (!reader) return `${ONLY_WITH_YES}; there is nothing to forget yet`
  const lines = [`${ONLY_WITH_YES}. What would go:`]
  for (const collection of collections) {
    const held = await holdingsOf(reader, { organizationId: organization.id, collection })
    lines.push(`  ${printable(organization.name)} ${collection}: ${holdingsText(held)}`)
  }
  return lines.join('\n')
}
