import { describe, expect, it } from 'vitest'
import { freeLists } from '../../../src/store/postgres/leases.ts'
import { jobOf } from '../../helpers/jobs.ts'
import { emptySchema } from '../../helpers/kept-schema.ts'
import { openDatabase } from '../../helpers/postgres.ts'
import { openPostgresMirror } from '../../helpers/postgres-mirror.ts'

const server = await openDatabase()

describe.skipIf(server.missing !== null)('workers that refresh the lists of one mirror', () => {
  it('leave a list to the process that reads it, until that dies', async () => {
    const first = await openPostgresMirror(await emptySchema(server))
    const job = jobOf()
    const list = { organizationId: job.organization.id, collection: 'orders' }
    const other = { organizationId: 'o1', collection: 'orders' }
    const free = () => freeLists(second.server, [list, other])
    await first.store.acquire(job)
    const second = await openPostgresMirror(first.address, first.clock)
    expect(await free()).toEqual([other])
    await first.close()
    expect(await free()).toEqual([list, other])
  })
})
